"""Changes of intermediaries: taxpayers in the role of acting for others (contract 4)."""

from datetime import datetime
from typing import Unpack

from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.models import Intermediary, Taxpayer
from taxpayers.moments import format_moment
from taxpayers.operations import (
    ByReason,
    Operation,
    Reason,
    unneeded_if_active,
    unneeded_if_inactive,
)
from taxpayers.services import history
from taxpayers.services.new_records import NewRecord, save_new
from taxpayers.validation import ServiceError, validate_end

REGISTER_INTERMEDIARY = Operation(
    actions.REGISTER_INTERMEDIARY,
    "Register an intermediary",
    "The taxpayer becomes an intermediary. It may act for other taxpayers, but only with the"
    " permissions that they grant.",
    Reason.OPTIONAL,
)


@history.makes(REGISTER_INTERMEDIARY)
def register_intermediary(
    *, taxpayer: Taxpayer, until: datetime | None = None, **asked: Unpack[history.Asked]
) -> Intermediary:
    """Make the taxpayer an intermediary, until a last moment or for good; safe to repeat.

    Raises ServiceError if it is already one, but inactive or with another end.
    """
    context = history.context_of(REGISTER_INTERMEDIARY, **asked)
    record = prepare_intermediary(
        taxpayer=history.lock_for_update(taxpayer), until=until, at=context.at
    )
    row: Intermediary = save_new(record, context)
    return row


def prepare_intermediary(*, taxpayer: Taxpayer, until: datetime | None, at: datetime) -> NewRecord:
    """The role that `register_intermediary` would store, or the present one. Raises as it does."""
    row = Intermediary.objects.filter(taxpayer=taxpayer).first()
    if row is None:
        row = Intermediary(
            taxpayer=taxpayer,
            active_until=validate_end(until, _("the role"), at, "until"),
            created_at=at,
        )
    elif not row.is_active or row.active_until != until:
        raise ServiceError(
            "{taxpayer} is already an intermediary, {state}."
            " Change the intermediary instead of registering it again.",
            "already_registered",
            "taxpayer",
            taxpayer=taxpayer.identifier,
            state=_describe_state(row),
        )
    return NewRecord(row, {"is_active": row.is_active, "active_until": row.active_until})


def _describe_state(row: Intermediary) -> str:
    if not row.is_active:
        return _("but not active")
    if row.active_until is None:
        return _("with no end date")
    return _("until {moment}").format(moment=format_moment(row.active_until))


DEACTIVATE_INTERMEDIARY = ByReason(
    actions.CHANGE_INTERMEDIARY,
    "Deactivate the intermediary",
    "From now on it cannot act for others, and its tokens on behalf of others end. Its"
    " permissions stay in the registry.",
    is_danger=True,
    own_name="deactivate_intermediary",
    unneeded=unneeded_if_inactive,
)
ACTIVATE_INTERMEDIARY = ByReason(
    actions.CHANGE_INTERMEDIARY,
    "Activate the intermediary",
    "It may act for other taxpayers again, with the permissions that it has.",
    own_name="activate_intermediary",
    unneeded=unneeded_if_active,
)


@history.switches(ACTIVATE_INTERMEDIARY, DEACTIVATE_INTERMEDIARY, "intermediary")
def set_intermediary_active(
    *, intermediary: Intermediary, is_active: bool, **asked: Unpack[history.Asked]
) -> Intermediary:
    """Activate or deactivate it; its last moment stays."""
    context = history.context_of(actions.CHANGE_INTERMEDIARY, **asked)
    row = history.lock_for_update(intermediary)
    history.update_and_record(row, context, is_active=is_active)
    return row
