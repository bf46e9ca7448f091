"""Requests for permissions: ask, withdraw, expire (contract 4). `decisions` has what comes of them.

To ask reads nothing of the taxpayer that is named, so it does the same work whether that exists.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Unpack

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, Intermediary, PermissionRequest
from taxpayers.models.permission_request import EXPIRED, OPEN, WITHDRAWN
from taxpayers.moments import format_moment
from taxpayers.services import history
from taxpayers.services.named import validate_codes
from taxpayers.validation import ServiceError, refuse_if, validate_end, validate_text

MAX_REFERENCE_LENGTH = 128
_BATCH = 500


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
    **asked: Unpack[history.Asked],
) -> PermissionRequest:
    """Ask this taxpayer, whether it exists or not. Safe to repeat while the request is open."""
    at = asked["at"]
    if taxpayer == intermediary.taxpayer.identifier:
        raise ServiceError("{taxpayer} needs no permission to act for itself.", taxpayer=taxpayer)
    validate_end(valid_until, _("the permission"), at)
    if valid_from and valid_until and valid_until <= valid_from:
        raise ServiceError("The permission would end before it begins. Choose a later end.")
    fields = {
        "tin": taxpayer.tin,
        "rob": taxpayer.rob,
        "codes": " ".join(validate_codes(codes)),
        "valid_from": valid_from,
        "valid_until": valid_until,
        "replaces": replaces,
        "own_reference": validate_reference(own_reference),
        "return_address": return_address,
    }
    role = history.lock_for_update(intermediary)  # so that the limit is exact
    is_open = role.requests.filter(state=OPEN, expires_at__gte=at)
    if present := is_open.filter(client_id=client_id, **fields).first():
        return present
    if is_open.count() >= settings.OPEN_REQUESTS_MOST:
        raise ServiceError(
            "{most} requests of this intermediary are open. Withdraw some, or wait until they"
            " are decided.",
            most=settings.OPEN_REQUESTS_MOST,
        )
    context = history.ChangeContext(actions.ASK_PERMISSION, **asked)
    return store_request(fields, context, intermediary=role, client_id=client_id)


def validate_reference(text: str) -> str:
    """Raises ServiceError; empty: none."""
    return text and validate_text(text, _("a reference"), MAX_REFERENCE_LENGTH)


def store_request(
    fields: dict[str, Any],
    context: history.ChangeContext,
    lifetime: timedelta = timedelta.max,
    **of: Any,
) -> PermissionRequest:
    """An open request with these fields, which the history has, and with what says who asks."""
    expires_at = context.at + min(lifetime, settings.PERMISSION_REQUEST_LIFETIME)
    row = PermissionRequest(created_at=context.at, expires_at=expires_at, **fields, **of)
    row.save(force_insert=True)
    stored = {"taxpayer": str(row.asked), **fields, "expires_at": expires_at}
    stored = {name: value for name, value in stored.items() if name not in ("tin", "rob")}
    history.record_change(row, context, after=stored)
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
def withdraw_permission_request(
    *, request: PermissionRequest, **asked: Unpack[history.Asked]
) -> PermissionRequest:
    """Who asked no longer does; nothing happens if it was withdrawn before."""
    row = history.lock_for_update(request)
    if row.state != WITHDRAWN:
        refuse_if(why_not_decided(row, asked["at"]))
        context = history.ChangeContext(actions.WITHDRAW_PERMISSION_REQUEST, **asked)
        history.update_and_record(row, context, state=WITHDRAWN, decided_at=context.at)
    return row


def expire_permission_requests(**asked: Unpack[history.Asked]) -> int:
    """Record of each request that was not decided in time that it has expired; how many."""
    context, count = history.ChangeContext(actions.EXPIRE_PERMISSION_REQUEST, **asked), 0
    late = PermissionRequest.objects.filter(state=OPEN, expires_at__lt=context.at)
    late = late.order_by("expires_at")
    while keys := list(late.values_list("pk", flat=True)[:_BATCH]):
        with transaction.atomic():
            for row in late.select_for_update().filter(pk__in=keys):
                history.update_and_record(row, context, state=EXPIRED, decided_at=row.expires_at)
                count += 1
    return count
