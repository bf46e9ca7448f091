"""The last moment of what ends: to extend it, or to set an earlier one (contract 4).

To extend never shortens. To end earlier is another change, so that it is not made by mistake.
"""

from datetime import datetime
from typing import Unpack

from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.actions import Action, marked
from taxpayers.evidence import Evidence
from taxpayers.facts.validity import is_over
from taxpayers.models import GrantedPermission, Intermediary, SystemUser
from taxpayers.moments import a_year_after, format_moment
from taxpayers.operations import Operation
from taxpayers.services.granted_permissions import codes_of, grant_permission
from taxpayers.services.history import Asked, context_of, lock_for_update, makes, update_and_record
from taxpayers.services.system_users import extend_system_user
from taxpayers.validation import refuse_if, validate_evidence, validate_reason

Ending = SystemUser | Intermediary | GrantedPermission
# Where a record of each kind has its last moment.
_FIELDS: dict[type[Ending], str] = {
    SystemUser: "expires_at",
    Intermediary: "active_until",
    GrantedPermission: "valid_until",
}


def end_of(record: Ending) -> datetime | None:
    """Its last moment; None: no end."""
    end: datetime | None = getattr(record, _FIELDS[type(record)])
    return end


def a_year_longer(record: Ending, at: datetime) -> datetime | None:
    """A year after its end, or after today if the end has passed; None if it has no end."""
    end = end_of(record)
    return None if end is None else a_year_after(max(end, at))


def why_never_extended(record: Ending, _at: datetime) -> str:
    """Why no date at all would extend it; empty if one can."""
    if isinstance(record, GrantedPermission) and record.revoked_at is not None:
        return _("It is revoked. Grant a new permission.")
    if end_of(record) is None:
        return _("It has no end date. To give it one, use “Set an earlier end”.")
    return ""


def why_not_extended(record: Ending, until: datetime | None, at: datetime) -> str:
    """Why this last moment (None: no end) would not extend it; empty if it would."""
    if fault := why_never_extended(record, at):
        return fault
    end = end_of(record)
    if until is None or end is None:
        return ""
    if until <= end:
        return _(
            "It ends {end}, and {until} is not later. To let it end earlier, use “Set an earlier"
            " end”."
        ).format(end=format_moment(end), until=format_moment(until))
    return _why_past(until, at)


def why_never_ended_earlier(record: Ending, at: datetime) -> str:
    """Why no date at all would let it end earlier; empty if one can."""
    end = end_of(record)
    if isinstance(record, GrantedPermission) and record.revoked_at is not None:
        return _("It is already revoked.")
    if end is not None and is_over(end, at):
        return _("It has already ended, {end}.").format(end=format_moment(end))
    return ""


def _why_not_ended_earlier(record: Ending, until: datetime, at: datetime) -> str:
    end = end_of(record)
    if end is not None and until >= end:
        return _(
            "It ends {end}, and {until} is not earlier. To let it end later, use “Extend”."
        ).format(end=format_moment(end), until=format_moment(until))
    if isinstance(record, GrantedPermission) and until <= record.valid_from:
        return _("It begins {begin}. To stop it before that, revoke it.").format(
            begin=format_moment(record.valid_from)
        )
    return _why_past(until, at)


def _why_past(until: datetime, at: datetime) -> str:
    if until > at:
        return ""
    return _("Choose a later date: {until} is in the past.").format(until=format_moment(until))


def _ends(action: Action, kind: str, title: str) -> tuple[Operation, Operation]:
    """To extend this kind of record, and to let it end earlier."""
    return Operation(
        action,
        title,
        "It gets a later last day, or none.",
        refusal=why_never_extended,
        own_name=f"extend_{kind}",
    ), Operation(
        action,
        "Set an earlier end",
        "It ends on a day that is earlier than now planned. To let it end later, use “Extend”.",
        refusal=why_never_ended_earlier,
        own_name=f"end_{kind}_earlier",
    )


EXTEND_SYSTEM_USER, END_SYSTEM_USER_EARLIER = _ends(
    actions.EXTEND_SYSTEM_USER, "system_user", marked("Extend the system user")
)
EXTEND_INTERMEDIARY, END_INTERMEDIARY_EARLIER = _ends(
    actions.CHANGE_INTERMEDIARY, "intermediary", marked("Extend the role of the intermediary")
)
EXTEND_PERMISSION, END_PERMISSION_EARLIER = _ends(
    actions.EXTEND_PERMISSION, "permission", marked("Extend the permission")
)


@makes((EXTEND_SYSTEM_USER, EXTEND_INTERMEDIARY, EXTEND_PERMISSION), "record")
def extend(
    *,
    record: Ending,
    until: datetime | None,
    evidence: Evidence | None = None,
    **asked: Unpack[Asked],
) -> Ending:
    """Let it end later, or (None) never. A permission that has ended is granted anew from now on.

    `evidence` is of a permission. Raises ServiceError if it would not end later.
    """
    row, at = lock_for_update(record), asked["at"]
    refuse_if(why_never_extended(row, at))
    refuse_if(why_not_extended(row, until, at), "wrong_end", "until")
    if isinstance(row, GrantedPermission) and is_over(row.valid_until, at):
        validate_reason(asked.get("reason", ""))  # which a new grant may leave out
        # Its own dates stay: between its end and now it was not in force.
        return grant_permission(
            taxpayer=row.taxpayer,
            intermediary=row.intermediary,
            codes=codes_of(row),
            valid_until=until,
            evidence=evidence,
            **asked,
        )
    return _set_end(row, until, evidence, **asked)


@makes((END_SYSTEM_USER_EARLIER, END_INTERMEDIARY_EARLIER, END_PERMISSION_EARLIER), "record")
def end_earlier(
    *, record: Ending, until: datetime, evidence: Evidence | None = None, **asked: Unpack[Asked]
) -> Ending:
    """Let it end earlier, at a moment in the future. Raises ServiceError if it would not."""
    row, at = lock_for_update(record), asked["at"]
    refuse_if(why_never_ended_earlier(row, at))
    refuse_if(_why_not_ended_earlier(row, until, at), "wrong_end", "until")
    return _set_end(row, until, evidence, **asked)


def _set_end(
    row: Ending, until: datetime | None, evidence: Evidence | None, **asked: Unpack[Asked]
) -> Ending:
    if isinstance(row, SystemUser):
        return extend_system_user(system_user=row, expires_at=until, **asked)
    is_role = isinstance(row, Intermediary)
    context = context_of(
        actions.CHANGE_INTERMEDIARY if is_role else actions.EXTEND_PERMISSION, **asked
    )
    proof = {} if is_role else {"evidence": validate_evidence(evidence, context.at)}
    update_and_record(row, context, **{_FIELDS[type(row)]: until}, **proof)
    return row
