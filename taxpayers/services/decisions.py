"""What a taxpayer decides about a request: all of it, less, or nothing (contract 4).

Who grants decides what an intermediary asks, and who issues credentials whether a system connects.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple, NotRequired, Unpack

from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.evidence import Evidence
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import PermissionRequest, Taxpayer
from taxpayers.models.permission_request import APPROVED, DECLINED
from taxpayers.moments import format_moment
from taxpayers.operations import Operation, Reason
from taxpayers.services import history
from taxpayers.services.granted_permissions import grant_permission, revoke_permission
from taxpayers.services.login_method.change import register_system_user_without_secret
from taxpayers.services.named import find_taxpayer
from taxpayers.services.permission_requests import present_permissions, why_not_decided
from taxpayers.validation import ServiceError, refuse_if, validate_evidence


class OtherTaxpayer(ServiceError):
    """Who decides acts for another taxpayer than the one that was asked."""


class Decision(history.Asked):
    """What every decision takes. `taxpayer`: that of the person who decides."""

    request: PermissionRequest
    taxpayer: NotRequired[TaxpayerId | None]
    evidence: NotRequired[Evidence | None]


class Approval(Decision):
    """Without `codes` all that were asked for are approved, without `until` as long as asked."""

    codes: NotRequired[Collection[str]]
    until: NotRequired[datetime | None]


def why_not_granted(row: PermissionRequest, at: datetime) -> str:
    """Why it is not decided by who grants permissions; empty if it is."""
    if row.is_connection:
        return _(
            "An ERP system asks to log in with its own key. Who issues credentials decides that."
        )
    return why_not_decided(row, at)


def why_not_connected(row: PermissionRequest, at: datetime) -> str:
    """Why it is not decided by who issues credentials; empty if it is."""
    if not row.is_connection:
        return _("An intermediary asks for a permission. Who grants permissions decides that.")
    return why_not_decided(row, at)


APPROVE_PERMISSION_REQUEST = Operation(
    actions.APPROVE_PERMISSION_REQUEST,
    "Approve the request",
    "The intermediary may log in on behalf of the taxpayer, with what is approved.",
    Reason.OPTIONAL,
    refusal=why_not_granted,
)


@history.makes(APPROVE_PERMISSION_REQUEST, "request")
def approve_permission_request(**given: Unpack[Approval]) -> PermissionRequest:
    """Grant what was asked for, or less. Raises OtherTaxpayer, or ServiceError."""
    row, context, to_store, approved = _approved(APPROVE_PERMISSION_REQUEST, **given)
    by, at, role, evidence = context.by, context.at, row.intermediary, given.get("evidence")
    if role is None or not role.is_active:
        raise ServiceError("The intermediary is not active.")
    if row.replaces:
        why = _("Replaced by request {id}").format(id=row.pk)
        for before in present_permissions(row, at):
            revoke_permission(permission=before, evidence=evidence, reason=why, by=by, at=at)
    permission = grant_permission(
        taxpayer=approved.owner,
        intermediary=role,
        codes=approved.codes,
        valid_from=max(row.valid_from or at, at),
        valid_until=approved.until,
        evidence=evidence,
        reason=context.reason,
        by=by,
        at=at,
    )
    history.update_and_record(row, context, **to_store, state=APPROVED, permission_id=permission.pk)
    return row


APPROVE_CONNECTION = Operation(
    actions.APPROVE_CONNECTION,
    "Approve the connection",
    "This registers a system user that logs in as the taxpayer with this key. Compare the"
    " fingerprint with the one that the ERP system shows, or that stands on the form.",
    Reason.OPTIONAL,
    refusal=why_not_connected,
)


@history.makes(APPROVE_CONNECTION, "request")
def approve_connection(**given: Unpack[Approval]) -> PermissionRequest:
    """Register a system user that logs in with the key. Raises OtherTaxpayer, or ServiceError."""
    row, context, to_store, approved = _approved(APPROVE_CONNECTION, **given)
    user = register_system_user_without_secret(
        taxpayer=approved.owner,
        name=f"{row.name} ({row.fingerprint[:9]})",  # one may have that name already
        keys=row.public_jwk,
        scopes=approved.codes,
        expires_at=approved.until,
        reason=_("Approved by request {id}").format(id=row.pk),
        by=context.by,
        at=context.at,
    )
    history.update_and_record(row, context, **to_store, state=APPROVED, system_user_id=user.pk)
    return row


DECLINE_PERMISSION_REQUEST, DECLINE_CONNECTION = (
    Operation(
        action,
        title,
        "Nothing is permitted by this request. It may be asked again.",
        Reason.OPTIONAL,
        refusal,
        is_danger=True,
    )
    for action, title, refusal in (
        (actions.DECLINE_PERMISSION_REQUEST, marked("Decline the request"), why_not_granted),
        (actions.DECLINE_CONNECTION, marked("Decline the connection"), why_not_connected),
    )
)


@history.makes(DECLINE_PERMISSION_REQUEST, "request")
def decline_permission_request(**given: Unpack[Decision]) -> PermissionRequest:
    """The taxpayer does not permit it. Raises OtherTaxpayer, or ServiceError."""
    return _decline(DECLINE_PERMISSION_REQUEST, **given)


@history.makes(DECLINE_CONNECTION, "request")
def decline_connection(**given: Unpack[Decision]) -> PermissionRequest:
    """The taxpayer does not want the system. Raises OtherTaxpayer, or ServiceError."""
    return _decline(DECLINE_CONNECTION, **given)


def operations_for(row: PermissionRequest) -> tuple[Operation, Operation]:
    """To approve a request of its kind, and to decline it."""
    if row.is_connection:
        return APPROVE_CONNECTION, DECLINE_CONNECTION
    return APPROVE_PERMISSION_REQUEST, DECLINE_PERMISSION_REQUEST


def _decline(operation: Operation, **given: Unpack[Decision]) -> PermissionRequest:
    row, context, to_store = _decided(operation, **given)
    history.update_and_record(row, context, **to_store, state=DECLINED)
    return row


class _Approved(NamedTuple):
    owner: Taxpayer
    codes: Collection[str]
    until: datetime | None


def _approved(
    operation: Operation,
    *,
    codes: Collection[str] = (),
    until: datetime | None = None,
    **given: Unpack[Decision],
) -> tuple[PermissionRequest, history.ChangeContext, dict[str, Any], _Approved]:
    given["by"] = given["by"].in_one_task()
    row, context, to_store = _decided(operation, **given)
    asked, until = row.codes.split(), until or row.valid_until
    if more := sorted(set(codes) - set(asked)):
        raise ServiceError(
            "These codes were not asked for: {codes}. Approve some of {asked}.",
            codes=", ".join(more),
            asked=", ".join(asked),
        )
    if until and row.valid_until and until > row.valid_until:
        end = format_moment(row.valid_until)
        raise ServiceError("The request ends {end}. Approve it until then, or less.", end=end)
    owner = find_taxpayer(row.asked)
    if not owner.is_active:
        raise ServiceError("The taxpayer is not active.")
    return row, context, to_store, _Approved(owner, codes or asked, until)


def _decided(
    operation: Operation,
    *,
    request: PermissionRequest,
    taxpayer: TaxpayerId | None = None,
    evidence: Evidence | None = None,
    **asked: Unpack[history.Asked],
) -> tuple[PermissionRequest, history.ChangeContext, dict[str, Any]]:
    """The locked request, if it can be decided so, and what every decision stores in it."""
    context, row = history.context_of(operation, **asked), history.lock_for_update(request)
    if taxpayer not in (None, row.asked):
        raise OtherTaxpayer(
            "The request is to {asked}, not to {taxpayer}. Only {asked} can decide it.",
            asked=row.asked,
            taxpayer=taxpayer,
        )
    refuse_if(operation.refusal(row, context.at))
    proof = validate_evidence(evidence, context.at)
    return row, context, {"decided_at": context.at, "evidence": proof}
