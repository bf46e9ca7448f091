"""Granted permissions that an intermediary can use, now or later, a page at a time."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, Intermediary, Taxpayer
from tokens.self_service.cursor import Cursor


@dataclass(frozen=True, slots=True)
class PermissionPage:
    """At most as many as were asked for, and where the next page begins; None: it is the last."""

    permissions: list[GrantedPermission]
    next_cursor: Cursor | None


def usable_permissions(
    system_user_id: int,
    *,
    taxpayer: TaxpayerId | None,
    after: Cursor | None,
    limit: int,
    at: datetime,
) -> PermissionPage:
    """Permissions for the intermediary of this client, in force or to come; three queries.

    From one taxpayer, or from all. Those of a taxpayer that is not active give no login a token,
    so they are left out, as if there were none: no caller learns which taxpayers exist.
    """
    # Subqueries and a second query, not joins: so PostgreSQL reads the index permission_pair in its
    # order from the cursor on, and ends with the page. With a join it read all taxpayers up to it.
    intermediary = Intermediary.objects.filter(taxpayer__system_users=system_user_id).values("pk")
    rows = GrantedPermission.objects.filter(
        Q(valid_until=None) | Q(valid_until__gte=at), intermediary=intermediary[:1], revoked_at=None
    )
    if taxpayer is not None:
        named = Taxpayer.objects.filter(tin=taxpayer.tin, rob=taxpayer.rob).values("pk")
        rows = rows.filter(taxpayer=named[:1])
    if after is not None:
        rows = rows.filter(
            Q(taxpayer_id__gt=after.taxpayer_id) | Q(pk__gt=after.permission_id),
            taxpayer_id__gte=after.taxpayer_id,
        )
    ordered = rows.order_by("taxpayer_id", "pk").prefetch_related("taxpayer", "codes")
    found = list(ordered[: limit + 1])
    page = found[:limit]
    next_cursor = Cursor(page[-1].taxpayer_id, page[-1].pk) if len(found) > limit else None
    return PermissionPage([row for row in page if row.taxpayer.is_active], next_cursor)
