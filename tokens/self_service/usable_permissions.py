"""Granted permissions that an intermediary can use, now or later, a page at a time."""

from dataclasses import replace
from datetime import datetime

from django.db.models import Q

from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, Intermediary, Taxpayer
from tokens.resource_server.pagination import ListPage, page_of

_ORDER = ("taxpayer_id", "pk")


def usable_permissions(
    system_user_id: int, *, taxpayer: TaxpayerId | None, cursor: str, limit: int, at: datetime
) -> ListPage:
    """Permissions for the intermediary of this client, in force or to come; three queries.

    From one taxpayer, or from all. Those of a taxpayer that is not active give no login a token,
    so they are left out, as if there were none: no caller learns which taxpayers exist. Raises
    BadCursor.
    """
    # Subqueries and a second query, not joins: so PostgreSQL reads the index permission_pair in its
    # order from the cursor on, and ends with the page. With a join it read all taxpayers up to it.
    intermediary = Intermediary.objects.filter(taxpayer__system_users=system_user_id).values("pk")
    rows = GrantedPermission.objects.filter(
        Q(valid_until=None) | Q(valid_until__gte=at), intermediary=intermediary[:1], revoked_at=None
    ).prefetch_related("taxpayer", "codes")
    if taxpayer is not None:
        named = Taxpayer.objects.filter(tin=taxpayer.tin, rob=taxpayer.rob).values("pk")
        rows = rows.filter(taxpayer=named[:1])
    page = page_of(rows, _ORDER, cursor=cursor, limit=limit, name="permissions")
    return replace(page, rows=[row for row in page.rows if row.taxpayer.is_active])
