"""An intermediary of many taxpayers: what a page of its permissions costs PostgreSQL."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from django.db import connection

from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission
from tests.support.factories import IntermediaryFactory, SystemUserFactory
from tests.support.queries import rows_read_by
from tokens.resource_server.pagination import ListPage, page_of
from tokens.self_service.permissions import usable_permissions

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db, pytest.mark.slow]
TAXPAYERS, LIMIT = 30_000, 100

_ROWS = """
INSERT INTO taxpayers (tin, rob, name, created_at)
    SELECT 'T' || lpad(n::text, 9, '0'), '', 'A company', now() FROM generate_series(1, %(n)s) n;
INSERT INTO granted_permissions (taxpayer_id, intermediary_id, valid_from, created_at)
    SELECT t.id, %(role)s, now() - interval '1 day', now() FROM taxpayers t WHERE tin LIKE 'T0%%';
INSERT INTO granted_permissions (taxpayer_id, intermediary_id, valid_from, created_at)
    SELECT t.id, %(other)s, now() - interval '1 day', now() FROM taxpayers t WHERE tin LIKE 'T0%%';
INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)
    SELECT id, 'documents:submit' FROM granted_permissions;
"""


@pytest.fixture
def client(db: None) -> int:
    """A client of an intermediary with many permissions, beside another one with as many."""
    role, other = IntermediaryFactory.create_batch(2)
    with connection.cursor() as cursor:
        for statement in _ROWS.strip().split(";\n"):
            cursor.execute(statement, {"n": TAXPAYERS, "role": role.pk, "other": other.pk})
        for table in ("taxpayers", "granted_permissions", "granted_permission_codes"):
            cursor.execute(f"ANALYZE {table}")
    return SystemUserFactory.create(taxpayer=role.taxpayer).pk


def page(client: int, taxpayer: TaxpayerId | None, cursor: str, limit: int) -> ListPage:
    """As the address answers it."""
    rows = usable_permissions(client, taxpayer, datetime.now(UTC))
    return page_of(rows, ("taxpayer_id", "pk"), cursor=cursor, limit=limit, name="permissions")


def test_a_page_reads_little_more_than_its_rows_wherever_it_is(client: int) -> None:
    shown = page(client, taxpayer=None, cursor="", limit=500).rows
    rows = GrantedPermission.objects.filter(intermediary=shown[0].intermediary)
    middle = page_of(
        rows, ("taxpayer_id", "pk"), cursor="", limit=TAXPAYERS // 2, name="permissions"
    ).next_cursor
    questions: list[dict[str, Any]] = [
        {},
        {"cursor": middle},
        {"taxpayer": TaxpayerId(shown[-1].taxpayer.tin)},
    ]
    for question in questions:
        asked: dict[str, Any] = {"taxpayer": None, "cursor": "", "limit": LIMIT} | question
        read = rows_read_by(partial(page, client, **asked))
        assert len(read) == 3
        assert max(read) <= 2 * LIMIT, (question, read)
