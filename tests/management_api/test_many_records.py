"""A large registry: what a page of each list costs PostgreSQL, wherever the page is."""

from functools import partial
from typing import Any

import pytest
from django.db import connection

from identity.api.framework.fields import values_of
from identity.api.framework.kinds import Listing
from identity.api.registry import logins, permissions, system_users, taxpayers
from identity.api.registry.history import history_of
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Intermediary, Taxpayer
from tests.support import make
from tests.support.moments import now
from tests.support.queries import rows_read_by
from tokens.resource_server.pagination import page_of
from tokens.self_service.permissions import usable_permissions

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db, pytest.mark.slow]
ROWS, LIMIT = 20_000, 100
TABLES = (
    *("taxpayers", "system_users", "granted_permissions", "granted_permission_codes"),
    *("permission_codes", "changes", "login_events"),
)
CHANGES = history_of("taxpayers", "taxpayer")

_FILL = """
INSERT INTO taxpayers (tin, rob, name, created_at)
    SELECT 'T' || lpad(n::text, 9, '0'), '', 'A company ' || n, now()
    FROM generate_series(1, %(n)s) n;
INSERT INTO system_users (client_id, name, taxpayer_id, scopes, logins_per_minute, created, updated,
        blocked_by, blocked_reason)
    SELECT 'ci_test_' || id, 'ERP ' || id, id, '', 12, now(), now(), '', '' FROM taxpayers;
INSERT INTO granted_permissions (taxpayer_id, intermediary_id, valid_from, created_at)
    SELECT id, %(other)s, now() - interval '1 day', now() FROM taxpayers WHERE tin LIKE 'T0%%';
INSERT INTO granted_permissions (taxpayer_id, intermediary_id, valid_from, created_at)
    SELECT id, %(role)s, now() - interval '1 day', now() FROM taxpayers WHERE tin LIKE 'T0%%';
INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)
    SELECT id, 'documents:submit' FROM granted_permissions;
INSERT INTO changes (at, by, action, object_type, object_id, label, reason, before, after)
    SELECT now() - n * interval '1 second', 'officer', 'rename_taxpayer', 'taxpayer',
        %(owner)s::text, '', '', '{}', '{}' FROM generate_series(1, %(n)s) n;
INSERT INTO login_events (id, at, client_id, reason, parameter, detail, subject, actor, scope, kid,
        user_agent)
    SELECT gen_random_uuid(), now(), 'ci_test_1', '', '', '', 'T000000001', '', '', '', ''
    FROM generate_series(1, %(n)s) n;
"""


@pytest.fixture
def registry(db: None) -> Taxpayer:
    """The taxpayer of the intermediary, which has a long history."""
    other = make.intermediary()  # with as many permissions, granted before
    role = make.intermediary(taxpayer__tin="C9876543210")
    keys = {"n": ROWS, "owner": role.taxpayer.pk, "role": role.pk, "other": other.pk}
    with connection.cursor() as cursor:
        for statement in _FILL.strip().strip(";").split(";\n"):
            cursor.execute(statement, keys)
        # Rows that wait to be merged into an index make it dear; autovacuum does this later.
        cursor.execute(
            "SELECT gin_clean_pending_list(c.oid) FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
            " WHERE a.amname = 'gin' AND c.relkind = 'i'"
        )
        for table in TABLES:
            cursor.execute(f"ANALYZE {table}")
    taxpayer: Taxpayer = role.taxpayer
    return taxpayer


AGENT = {"intermediary": "C9876543210"}
QUESTIONS: list[tuple[Listing, dict[str, Any]]] = [
    (taxpayers.KIND.listing, {}),
    (taxpayers.KIND.listing, {"tin": "T000000077"}),
    (taxpayers.KIND.listing, {"state": "inactive"}),
    (taxpayers.KIND.listing, {"name": "company 19999"}),
    (system_users.KIND.listing, {}),
    (system_users.KIND.listing, {"taxpayer": "T000000077"}),
    (system_users.KIND.listing, {"state": "blocked"}),
    (permissions.KIND.listing, {}),
    (permissions.KIND.listing, AGENT),
    (permissions.KIND.listing, {"taxpayer": "T000000077"}),
    (CHANGES, {}),
    (logins.KIND.listing, {}),
    (logins.KIND.listing, {"client_id": "ci_test_1"}),
    (logins.KIND.listing, {"taxpayer": "T000000001"}),
    (logins.KIND.listing, {"outcome": "no_permission"}),
]


def test_a_page_reads_little_more_than_its_rows_wherever_it_is(registry: Taxpayer) -> None:
    for listing, given in QUESTIONS:
        rows = chosen(listing, given, registry)
        middle = list(rows.order_by(*listing.order)[ROWS // 2 : ROWS // 2 + 2])
        cursor = ""
        if len(middle) == 2:  # the page after the first of these two
            before = rows.filter(pk__in=[row.pk for row in middle])
            cursor = page_of(before, listing.order, cursor="", limit=1, name="x").next_cursor or ""
            assert cursor
        for place in {"", cursor}:
            read = rows_read_by(partial(page, listing, given, registry, place))
            assert max(read) <= 5 * LIMIT, (listing.name, given, bool(place), read)
    assert_few_rows_are_read_for_an_intermediary(registry.intermediary)


def chosen(listing: Listing, given: dict[str, str], owner: Taxpayer) -> Any:
    values = values_of(listing.filters, given)
    del values["limit"]
    return listing.chosen(values, *([owner] if listing is CHANGES else []))


def page(listing: Listing, given: dict[str, Any], owner: Taxpayer, cursor: str) -> None:
    page_of(chosen(listing, given, owner), listing.order, cursor=cursor, limit=LIMIT, name="x")


def assert_few_rows_are_read_for_an_intermediary(role: Intermediary) -> None:
    """`GET /api/v1/permissions`."""
    client, order = make.system_user(taxpayer=role.taxpayer).pk, ("taxpayer_id", "pk")

    def read(taxpayer: TaxpayerId | None = None, cursor: str = "", limit: int = LIMIT) -> Any:
        rows = usable_permissions(client, taxpayer, now())
        return page_of(rows, order, cursor=cursor, limit=limit, name="permissions")

    half = read(limit=ROWS // 2)
    of_one = partial(read, half.rows[-1].taxpayer.identifier)
    for one in (read, partial(read, cursor=half.next_cursor), of_one):
        rows_read = rows_read_by(one)
        assert len(rows_read) == 3
        assert max(rows_read) <= 2 * LIMIT, (one, rows_read)
