"""Requests for permissions: ask, approve, decline, withdraw, expire (contract 4).

To ask reads nothing of the taxpayer that is named, so it does the same work whether that exists.
"""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.evidence import Evidence
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, Intermediary, PermissionCode, PermissionRequest
from taxpayers.models.permission_request import APPROVED, DECLINED, EXPIRED, OPEN, WITHDRAWN
from taxpayers.moments import format_moment
from taxpayers.operations import Operation, Reason
from taxpayers.services.evidence import checked_evidence
from taxpayers.services.granted_permissions import grant_permission, revoke_permission
from taxpayers.services.history import (
    Author,
    ChangeContext,
    context_of,
    lock_for_update,
    record_change,
    update_and_record,
)
from taxpayers.services.named import find_taxpayer
from taxpayers.validation import ServiceError, validate_end, validate_known, validate_text

MAX_REFERENCE_LENGTH = 128
_BATCH = 500


class OtherTaxpayer(ServiceError):
    """Who approves acts for another taxpayer than the one that was asked."""


@transaction.atomic
def ask_permission(
    *,
    taxpayer: TaxpayerId,
    intermediary: Intermediary,
    codes: Collection[str],
    client_id: str,
    valid_from: datetime | None = None,
    valid_until: datetime | None = None,
    replaces: bool = False,
    own_reference: str = "",
    return_address: str = "",
    by: Author,
    at: datetime,
) -> PermissionRequest:
    """Ask this taxpayer, whether it exists or not. Safe to repeat while the request is open.

    Raises ServiceError for what no taxpayer could approve, or if too many requests are open.
    """
    if taxpayer == intermediary.taxpayer.identifier:
        raise ServiceError(
            _("{taxpayer} needs no permission to act for itself.").format(taxpayer=taxpayer)
        )
    validate_end(valid_until, _("the permission"), at)
    if valid_from and valid_until and valid_until <= valid_from:
        raise ServiceError(_("The permission would end before it begins. Choose a later end."))
    known = set(PermissionCode.objects.values_list("code", flat=True))
    fields = {
        "tin": taxpayer.tin,
        "rob": taxpayer.rob,
        "codes": " ".join(validate_known(codes, known, _("permission code"))),
        "valid_from": valid_from,
        "valid_until": valid_until,
        "replaces": replaces,
        "own_reference": validate_reference(own_reference),
        "return_address": return_address,
    }
    role = lock_for_update(intermediary)  # so that the limit is exact
    is_open = role.requests.filter(state=OPEN, expires_at__gte=at)
    if present := is_open.filter(client_id=client_id, **fields).first():
        return present
    if is_open.count() >= settings.OPEN_REQUESTS_MOST:
        raise ServiceError(
            _(
                "{most} requests of this intermediary are open. Withdraw some, or wait until they"
                " are decided."
            ).format(most=settings.OPEN_REQUESTS_MOST)
        )
    context = ChangeContext(actions.ASK_PERMISSION, by, at)
    return store_request(fields, context, intermediary=role, client_id=client_id)


def validate_reference(text: str) -> str:
    """Raises ServiceError; empty: none."""
    return text and validate_text(text, _("a reference"), MAX_REFERENCE_LENGTH)


def store_request(
    fields: dict[str, Any], context: ChangeContext, lifetime: timedelta = timedelta.max, **of: Any
) -> PermissionRequest:
    """An open request with these fields, which the history has, and with what says who asks."""
    expires_at = context.at + min(lifetime, settings.PERMISSION_REQUEST_LIFETIME)
    row = PermissionRequest(created_at=context.at, expires_at=expires_at, **fields, **of)
    row.save(force_insert=True)
    stored = {"taxpayer": str(row.asked), **fields, "expires_at": expires_at}
    stored = {name: value for name, value in stored.items() if name not in ("tin", "rob")}
    record_change(row, context, after=stored)
    return row


def why_not_decided(row: PermissionRequest, at: datetime) -> str:
    """Why it can be neither approved, declined nor withdrawn; empty if it can."""
    match row.state_at(at):
        case "approved":
            return _("The request is already approved.")
        case "declined":
            return _("The request is already declined.")
        case "withdrawn":
            return _("The request was withdrawn.")
        case "expired":
            end = format_moment(row.expires_at)
            return _("The request expired {end}. Ask again.").format(end=end)
    return ""


def why_not_granted(row: PermissionRequest, at: datetime) -> str:
    """Why no permission can be granted for it; empty if one can."""
    if row.is_connection:
        return _(
            "An ERP system asks to log in with its own key. Who issues credentials approves that:"
            " Approve the connection."
        )
    return why_not_decided(row, at)


def present_permissions(row: PermissionRequest, at: datetime) -> list[GrantedPermission]:
    """What the taxpayer has granted to the intermediary and has not ended, the oldest first."""
    rows = GrantedPermission.objects.filter(
        Q(valid_until=None) | Q(valid_until__gte=at),
        taxpayer__tin=row.tin,
        taxpayer__rob=row.rob,
        intermediary=row.intermediary_id,
        revoked_at=None,
    )
    rows = rows.select_related("taxpayer", "intermediary__taxpayer")
    return list(rows.prefetch_related("codes").order_by("pk"))


@transaction.atomic
def approve_permission_request(
    *,
    request: PermissionRequest,
    codes: Collection[str] = (),
    until: datetime | None = None,
    taxpayer: TaxpayerId | None = None,
    evidence: Evidence | None = None,
    reason: str = "",
    by: Author,
    at: datetime,
) -> PermissionRequest:
    """Grant what was asked; with `codes` only these of it, with `until` not longer than that.

    `taxpayer`: that of the person who approves. Raises OtherTaxpayer, or ServiceError.
    """
    by = by.in_one_task()
    context = context_of(APPROVE_PERMISSION_REQUEST, reason=reason, by=by, at=at)
    row = locked_open(request, taxpayer, at, why_not_granted)
    approved = check_less(row, codes, until)
    granting, role = find_taxpayer(row.asked), row.intermediary
    if role is None or not granting.is_active or not role.is_active:
        raise ServiceError(_("The taxpayer or the intermediary is not active."))
    if row.replaces:
        why = _("Replaced by request {id}").format(id=row.pk)
        for before in present_permissions(row, at):
            revoke_permission(permission=before, evidence=evidence, reason=why, by=by, at=at)
    permission = grant_permission(
        taxpayer=granting,
        intermediary=role,
        codes=approved,
        valid_from=max(row.valid_from or at, at),
        valid_until=until or row.valid_until,
        evidence=evidence,
        reason=reason,
        by=by,
        at=at,
    )
    update_and_record(
        row,
        context,
        state=APPROVED,
        decided_at=at,
        evidence=permission.evidence,
        permission_id=permission.pk,
    )
    return row


@transaction.atomic
def decline_permission_request(
    *,
    request: PermissionRequest,
    taxpayer: TaxpayerId | None = None,
    evidence: Evidence | None = None,
    reason: str = "",
    by: Author,
    at: datetime,
) -> PermissionRequest:
    """The taxpayer does not permit it. Raises as `approve_permission_request`."""
    context = context_of(DECLINE_PERMISSION_REQUEST, reason=reason, by=by, at=at)
    row = locked_open(request, taxpayer, at)
    proof = checked_evidence(evidence, at)
    update_and_record(row, context, state=DECLINED, decided_at=at, evidence=proof)
    return row


@transaction.atomic
def withdraw_permission_request(
    *, request: PermissionRequest, by: Author, at: datetime
) -> PermissionRequest:
    """Who asked no longer does; nothing happens if it was withdrawn before."""
    row = lock_for_update(request)
    if row.state != WITHDRAWN:
        if fault := why_not_decided(row, at):
            raise ServiceError(fault)
        context = ChangeContext(actions.WITHDRAW_PERMISSION_REQUEST, by, at)
        update_and_record(row, context, state=WITHDRAWN, decided_at=at)
    return row


def expire_permission_requests(*, by: Author, at: datetime) -> int:
    """Record of each request that was not decided in time that it has expired; how many."""
    context, count = ChangeContext(actions.EXPIRE_PERMISSION_REQUEST, by, at), 0
    late = PermissionRequest.objects.filter(state=OPEN, expires_at__lt=at).order_by("expires_at")
    while keys := list(late.values_list("pk", flat=True)[:_BATCH]):
        with transaction.atomic():
            for row in late.select_for_update().filter(pk__in=keys):
                update_and_record(row, context, state=EXPIRED, decided_at=row.expires_at)
                count += 1
    return count


def check_less(
    row: PermissionRequest, codes: Collection[str], until: datetime | None
) -> Collection[str]:
    """What is approved; without `codes` all. Raises ServiceError if it is more than was asked."""
    asked = row.codes.split()
    if more := sorted(set(codes) - set(asked)):
        raise ServiceError(
            _("These codes were not asked for: {codes}. Approve some of {asked}.").format(
                codes=", ".join(more), asked=", ".join(asked)
            )
        )
    if until and row.valid_until and until > row.valid_until:
        end = format_moment(row.valid_until)
        raise ServiceError(
            _("The request ends {end}. Approve it until then, or less.").format(end=end)
        )
    return codes or asked


def locked_open(
    request: PermissionRequest,
    taxpayer: TaxpayerId | None,
    at: datetime,
    why_not: Callable[[PermissionRequest, datetime], str] = why_not_decided,
) -> PermissionRequest:
    """Raises OtherTaxpayer, or ServiceError if it cannot be decided so."""
    row = lock_for_update(request)
    if taxpayer is not None and taxpayer != row.asked:
        raise OtherTaxpayer(
            _("The request is to {asked}, not to {taxpayer}. Only {asked} can decide it.").format(
                asked=row.asked, taxpayer=taxpayer
            )
        )
    if fault := why_not(row, at):
        raise ServiceError(fault)
    return row


APPROVE_PERMISSION_REQUEST = Operation(
    actions.APPROVE_PERMISSION_REQUEST,
    marked("Approve the request"),
    marked("The intermediary may log in on behalf of the taxpayer, with what is approved."),
    Reason.OPTIONAL,
    refusal=why_not_granted,
    service=approve_permission_request,
    row="request",
)
DECLINE_PERMISSION_REQUEST = Operation(
    actions.DECLINE_PERMISSION_REQUEST,
    marked("Decline the request"),
    marked("Nothing is permitted by this request. It may be asked again."),
    Reason.OPTIONAL,
    refusal=why_not_decided,
    is_danger=True,
    service=decline_permission_request,
    row="request",
)
