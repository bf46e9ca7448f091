"""Changes of granted permissions and of the codes that can be granted (contract 4)."""

import re
from collections.abc import Collection
from datetime import datetime
from typing import Any, Unpack

from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.evidence import Evidence
from taxpayers.models import GrantedPermission, Intermediary, PermissionCode, Taxpayer
from taxpayers.moments import format_moment
from taxpayers.operations import ByReason, Operation, Reason
from taxpayers.services import history
from taxpayers.services.named import validate_codes
from taxpayers.services.new_records import NewRecord, save_new
from taxpayers.validation import (
    MAX_NAME_LENGTH,
    ServiceError,
    validate_end,
    validate_evidence,
    validate_text,
)

_CODE = re.compile(r"[a-z0-9_]+(:[a-z0-9_]+)*")
_MAX_CODE_LENGTH = 64


SET_PERMISSION_CODE = Operation(
    actions.SET_PERMISSION_CODE,
    "Add or change a permission code",
    "If the code exists, its description is replaced.",
    Reason.NONE,
)


@history.makes(SET_PERMISSION_CODE)
def set_permission_code(
    *, code: str, description: str, by: history.Author, at: datetime
) -> PermissionCode:
    """Create the code, or change its description; safe to repeat."""
    if not _CODE.fullmatch(code) or len(code) > _MAX_CODE_LENGTH:
        raise ServiceError(
            "Write the code as words of a-z, 0-9 and _ separated by colons, {longest}"
            " characters at most, for example documents:submit.",
            longest=_MAX_CODE_LENGTH,
        )
    description = validate_text(description, _("a description"), MAX_NAME_LENGTH)
    context = history.ChangeContext(actions.SET_PERMISSION_CODE, by, at)
    row, is_new = PermissionCode.objects.select_for_update().get_or_create(
        code=code, defaults={"description": description}
    )
    if is_new:
        history.record_change(row, context, after={"description": description})
    else:
        history.update_and_record(row, context, description=description)
    return row


GRANT_PERMISSION = Operation(
    actions.GRANT_PERMISSION,
    "Grant a permission",
    "The intermediary may log in on behalf of the taxpayer.",
    Reason.OPTIONAL,
)


@history.makes(GRANT_PERMISSION)
def grant_permission(
    *,
    taxpayer: Taxpayer,
    intermediary: Intermediary,
    codes: Collection[str],
    valid_from: datetime | None = None,
    valid_until: datetime | None = None,
    evidence: Evidence | None = None,
    **asked: Unpack[history.Asked],
) -> GrantedPermission:
    """Permit the intermediary to act for the taxpayer, from a moment (None: now) to a last one.

    Safe to repeat: returns a permission with the same codes and end that has begun by then.
    """
    context = history.context_of(GRANT_PERMISSION, **asked)
    # Two people who grant the same at once make one permission.
    record = prepare_permission(
        taxpayer=history.lock_for_update(taxpayer),
        intermediary=intermediary,
        codes=codes,
        valid_from=valid_from or context.at,
        valid_until=valid_until,
        evidence=evidence,
        at=context.at,
    )
    row: GrantedPermission = save_new(record, context)
    return row


def prepare_permission(
    *,
    taxpayer: Taxpayer,
    intermediary: Intermediary,
    codes: Collection[str],
    valid_from: datetime,
    valid_until: datetime | None,
    evidence: Evidence | None,
    at: datetime,
) -> NewRecord:
    """What `grant_permission` would store, or the present permission. Raises as it does."""
    if taxpayer.pk == intermediary.taxpayer_id:
        raise ServiceError(
            "{taxpayer} needs no permission to act for itself.",
            "own_taxpayer",
            "intermediary",
            taxpayer=taxpayer.identifier,
        )
    validate_end(valid_until, _("the permission"), at, "valid_until")
    if valid_until is not None and valid_until <= valid_from:
        raise ServiceError(
            "The permission would end {end}, before it begins {begin}. Choose a later end.",
            "wrong_end",
            "valid_until",
            end=format_moment(valid_until),
            begin=format_moment(valid_from),
        )
    wanted = validate_codes(codes, "codes")
    made: dict[str, Any] = {
        "taxpayer": taxpayer,
        "intermediary": intermediary,
        "valid_until": valid_until,
    }
    present = GrantedPermission.objects.filter(**made, revoked_at=None, valid_from__lte=valid_from)
    fields = {"codes": wanted, "valid_from": valid_from, "valid_until": valid_until}
    if proof := validate_evidence(evidence, at):
        fields["evidence"] = proof
    for row in present.prefetch_related("codes"):
        if codes_of(row) == wanted:
            return NewRecord(row, fields)
    row = GrantedPermission(**made, valid_from=valid_from, created_at=at, evidence=proof)
    return NewRecord(row, fields)


def codes_of(permission: GrantedPermission) -> list[str]:
    """Its codes, sorted."""
    return sorted(code.pk for code in permission.codes.all())


REVOKE_PERMISSION = ByReason(
    actions.REVOKE_PERMISSION,
    "Revoke the permission",
    "The permission ends now. This cannot be undone. Tokens that were already issued: APIs"
    " that check them with this service refuse them within 10 seconds, others accept them for"
    " up to one hour.",
    is_danger=True,
    unneeded=lambda row: "" if row.revoked_at is None else marked("It is already revoked."),
)


@history.makes(REVOKE_PERMISSION, "permission")
def revoke_permission(
    *,
    permission: GrantedPermission,
    evidence: Evidence | None = None,
    **asked: Unpack[history.Asked],
) -> GrantedPermission:
    """Revoke it now and for good; nothing happens if it was revoked before."""
    context = history.context_of(REVOKE_PERMISSION, **asked)
    row = history.lock_for_update(permission)
    if not REVOKE_PERMISSION.unneeded(row):
        history.update_and_record(
            row, context, revoked_at=context.at, evidence=validate_evidence(evidence, context.at)
        )
    return row


REVOKE_CODES = Operation(
    actions.REVOKE_PERMISSION,
    "Revoke permissions of an intermediary",
    "They end now. What is granted together with them stays, for its remaining time.",
    is_danger=True,
    own_name="revoke_codes",
)


@history.makes(REVOKE_CODES)
def revoke_codes(
    *,
    taxpayer: Taxpayer,
    intermediary: Intermediary,
    codes: Collection[str] = (),
    evidence: Evidence | None = None,
    **asked: Unpack[history.Asked],
) -> list[GrantedPermission]:
    """Revoke these codes (none: all) of the intermediary; returns the permissions that this ended.

    The other codes of such a permission are granted again for its remaining time. Safe to repeat.
    Raises ServiceError if none of these codes was ever granted.
    """
    context = history.context_of(REVOKE_CODES, **asked)
    history.lock_for_update(taxpayer)
    granted = GrantedPermission.objects.filter(taxpayer=taxpayer, intermediary=intermediary)
    affected = granted.filter(codes__in=codes).distinct() if codes else granted
    if not affected.exists():
        what = ", ".join(sorted(codes)) or _("anything")
        raise ServiceError(
            "{taxpayer} has never granted {what} to {intermediary}.",
            taxpayer=taxpayer.identifier,
            what=what,
            intermediary=intermediary.taxpayer.identifier,
        )
    ended = []
    for row in affected.filter(revoked_at=None).exclude(valid_until__lt=context.at):
        ended.append(revoke_permission(permission=row, evidence=evidence, **asked))
        remaining = [code for code in codes_of(row) if codes and code not in codes]
        if remaining and row.valid_until != context.at:
            grant_permission(
                taxpayer=taxpayer,
                intermediary=intermediary,
                codes=remaining,
                valid_from=max(row.valid_from, context.at),
                valid_until=row.valid_until,
                evidence=evidence,
                by=context.by,
                at=context.at,
            )
    return ended
