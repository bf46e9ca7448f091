"""After a test that commits, the next one finds the database as the migrations left it."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from taxpayers.models import PermissionCode
from tests.conftest import MIGRATED
from tests.support.factories import TaxpayerFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def migrated(pytestconfig: pytest.Config) -> Any:
    return pytestconfig.stash[MIGRATED]


def rows() -> dict[str, int]:
    """How many each table has."""
    tables = connection.introspection.table_names()
    with connection.cursor() as cursor:
        counted = {}
        for table in tables:
            cursor.execute(f'SELECT count(*) FROM "{table}"')  # noqa: S608 - our own tables
            counted[table] = cursor.fetchone()[0]
    return counted


def test_rows_that_were_added_changed_and_deleted(migrated: Any) -> None:
    TaxpayerFactory.create()
    migrated.restore()  # earlier tests were rolled back, and their numbers were not
    before, names = rows(), set(Group.objects.values_list("name", flat=True))
    assert (len(names), before["taxpayers"]) == (5, 0)
    number = TaxpayerFactory.create().pk
    migrated.restore()
    assert TaxpayerFactory.create().pk == number, "numbers begin anew"
    Group.objects.filter(name="viewer").update(name="x")
    PermissionCode.objects.all().delete()
    migrated.restore()
    assert rows() == before
    assert set(Group.objects.values_list("name", flat=True)) == names


@pytest.mark.postgresql
@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE added ()",
        "DROP TABLE login_events_default",
        "ALTER TABLE taxpayers DISABLE TRIGGER USER",
    ],
)
def test_what_else_a_test_can_do_to_a_table_of_postgresql(migrated: Any, change: str) -> None:
    before = rows()
    with connection.cursor() as cursor:
        cursor.execute(change)
        cursor.execute("SELECT oid FROM pg_database WHERE datname = current_database()")
        database = cursor.fetchone()
    migrated.restore()
    with connection.cursor() as cursor:
        cursor.execute("SELECT oid FROM pg_database WHERE datname = current_database()")
        assert cursor.fetchone() != database, "it is a new copy"
    assert rows() == before
