"""Taxpayers in bulk: all of a file or none, safe to repeat, fast (contract 6)."""

import contextlib
import io
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taxpayers.actions import IMPORT_REGISTRY
from taxpayers.files.row_kinds import TaxpayerRow
from taxpayers.files.rows import ParsedFile
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, Taxpayer
from taxpayers.services import (
    IMPORT_KINDS,
    Author,
    BadRowsError,
    ImportResult,
    ServiceError,
    bulk_import,
    import_lock,
    one_import_at_a_time,
)
from taxpayers.services.history import ChangeContext, change_of
from taxpayers.services.taxpayers import registration_fields
from tests.registry.other_import import import_elsewhere
from tests.servers.processes import CHECKOUT
from tests.support import make
from tests.support.at_once import begin, end
from tests.support.command_line import error_of, json_output_of
from tests.support.databases import present_url

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MANY = 100_000
# Another process that begins an import and does not end it.
HOLD = """
import django, time
django.setup()
from taxpayers.services import one_import_at_a_time
with one_import_at_a_time():
    print("locked", flush=True)
    time.sleep(120)"""

TAXPAYERS = IMPORT_KINDS["taxpayers"]


def parsed(*rows: str) -> ParsedFile[TaxpayerRow]:
    text = "\n".join(["tin,rob,name,active", *rows])
    return TAXPAYERS.read(io.BytesIO(text.encode()))


def import_rows(read: ParsedFile[TaxpayerRow], **options: Any) -> ImportResult:
    return TAXPAYERS.run(parsed=read, source="x.csv", by=Author("alice"), at=AT, **options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "march.csv"


def write(file: Path, *rows: str) -> str:
    file.write_text("\n".join(["tin;rob;name;active", *rows, ""]), encoding="utf-8-sig")
    return str(file)


def test_all_rows_become_taxpayers() -> None:
    done = import_rows(
        parsed("C0000000001,,One,", "C0000000002,R-123,Two,no", "C0000000003,,Three,yes")
    )
    assert done == ImportResult(registered=3, unchanged=0)
    rows = [
        (row.identifier, row.name, row.is_active, row.created_at)
        for row in Taxpayer.objects.order_by("tin")
    ]
    assert rows == [
        (TaxpayerId("C0000000001"), "One", True, AT),
        (TaxpayerId("C0000000002", "R-123"), "Two", False, AT),
        (TaxpayerId("C0000000003"), "Three", True, AT),
    ]


def test_the_history_is_the_same_as_of_one_and_in_the_order_of_the_file() -> None:
    hostile = ['O\'Neil, "N" \\. \\N {};', "Syarikat Çelik 漢字 😀", "N" * 255, "%s %(a)s"]
    rows = [
        TaxpayerRow(line, TaxpayerId(f"C{9 - line:010}", "R-123"), name, False)
        for line, name in enumerate(hostile, start=2)
    ]
    author = Author("alice", "192.0.2.7", uuid4())
    TAXPAYERS.run(parsed=ParsedFile(rows), source="x.csv", by=author, at=AT)
    context = ChangeContext(IMPORT_REGISTRY, author, AT, "file x.csv")
    expected = [
        change_of(row, context, before={}, after=registration_fields(row))
        for row in Taxpayer.objects.order_by("pk")
    ]
    changes = list(Change.objects.order_by("pk"))
    fields = [field.attname for field in Change._meta.concrete_fields if field.name != "id"]
    assert [[getattr(change, name) for name in fields] for change in changes] == [
        [getattr(change, name) for name in fields] for change in expected
    ]
    assert [change.after["name"] for change in changes] == hostile


def test_registered_taxpayers_are_counted_and_left_unchanged() -> None:
    make.taxpayer(tin="C0000000001", name="One")
    make.taxpayer(tin="C0000000002", name="Two", is_active=False)
    make.taxpayer(tin="C0000000003", rob="R-123", name="Another of that TIN")
    rows = ("C0000000001,,One,yes", "C0000000002,,Two,", "C0000000003,,Three,")
    assert import_rows(parsed(*rows)) == ImportResult(registered=1, unchanged=2)
    assert import_rows(parsed(*rows)) == ImportResult(registered=0, unchanged=3)
    assert not Taxpayer.objects.get(tin="C0000000002").is_active
    assert Change.objects.count() == 1


def test_one_bad_row_stops_the_import_and_all_are_named_in_the_files_order() -> None:
    make.taxpayer(tin="C0000000001", name="One")
    make.taxpayer(tin="C0000000002", name="Two", is_active=False)
    rows = ("C0000000009,,Good,", "C0000000001,,Other,", "x,,Bad,", "C0000000002,,Two,yes")
    preview = TAXPAYERS.preview(parsed=parsed(*rows, "C0000000009,,Good,"), at=AT)
    assert ([entry.line for entry in preview.new], preview.unchanged) == ([2], 0)
    assert [row.line for row in preview.bad_rows] == [3, 4, 5, 6]
    with pytest.raises(BadRowsError) as fault:
        import_rows(parsed(*rows, "C0000000009,,Good,"))
    assert str(fault.value) == "4 of 5 rows are bad. Nothing has been imported."
    assert [str(row) for row in fault.value.bad_rows] == [
        "line 3: C0000000001 is already registered under the name One",
        "line 4: the TIN must be 5 to 20 letters and digits",
        "line 5: C0000000002 is already registered and is not active",
        "line 6: C0000000009 is already in line 2",
    ]
    assert Taxpayer.objects.count() == 2
    assert not Change.objects.exists()


def test_a_bad_row_in_the_last_batch_undoes_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_import, "_BATCH", 2)
    make.taxpayer(tin="C0000000005", name="Five")
    counted: list[int] = []
    rows = [f"C{n:010},,Company {n}," for n in range(1, 6)]
    with pytest.raises(BadRowsError):
        import_rows(parsed(*rows), progress=counted.append)
    assert counted == [2, 2, 1]
    assert Taxpayer.objects.count() == 1


def test_a_taxpayer_registered_at_the_same_moment_undoes_the_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compare = bulk_import._compare

    def compare_too_early(batch: Any) -> Any:
        outcome = compare(batch)
        make.taxpayer(tin="C0000000002", name="Two")
        return outcome

    monkeypatch.setattr(bulk_import, "_compare", compare_too_early)
    with pytest.raises(ServiceError, match="Another person registered"):
        import_rows(parsed("C0000000001,,One,", "C0000000002,,Two,"))
    assert not Taxpayer.objects.filter(tin="C0000000001").exists()
    assert not Change.objects.exists()


@pytest.mark.processes
def test_an_import_that_was_killed_leaves_no_lock() -> None:
    environment = dict(os.environ)
    if connection.vendor == "postgresql":
        environment["DATABASE_URL"] = present_url()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(ServiceError, match="Another import is running"):
            import_rows(parsed("C0000000001,,One,"))
        assert not Taxpayer.objects.exists()
        other.kill()
    for _ in range(100):  # PostgreSQL notices the end of a connection a moment later
        with contextlib.suppress(ServiceError):
            import_rows(parsed("C0000000001,,One,"))
            break
        time.sleep(0.1)
    assert Taxpayer.objects.count() == 1
    with pytest.raises(BadRowsError):
        import_rows(parsed("x,,Bad,"))
    assert import_rows(parsed("C0000000002,,Two,")).registered == 1  # after one that failed


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_the_lock_of_a_node_that_vanished_is_free_after_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    minute = import_lock._END_IF_IDLE
    assert minute.endswith("'60s'")
    monkeypatch.setattr(import_lock, "_END_IF_IDLE", minute.replace("60s", "1s"))
    with import_elsewhere():  # it never answers again
        with pytest.raises(ServiceError, match="Another import is running"), one_import_at_a_time():
            pass
        deadline, is_ours = time.monotonic() + 15, False
        while not is_ours:
            assert time.monotonic() < deadline
            with contextlib.suppress(ServiceError), one_import_at_a_time():
                is_ours = True
            time.sleep(0.1)


@pytest.mark.django_db(transaction=True)
def test_others_write_while_rows_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def register_one() -> None:
        written.append(make.taxpayer(tin=f"D{len(written):010}").pk)

    def write_elsewhere(_rows: int) -> None:
        """As a login, in another connection; on SQLite it could wait for 20 seconds, and fail."""
        end(begin(register_one))

    monkeypatch.setattr(bulk_import, "_BATCH", 2)
    import_rows(parsed(*(f"C{n:010},,Company," for n in range(6))), progress=write_elsewhere)
    assert len(written) == 3
    assert Taxpayer.objects.count() == 9


def test_a_file_has_at_most_as_many_rows_as_logins_can_wait_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert TAXPAYERS.max_rows() == (100_000 if connection.vendor == "sqlite" else 500_000)
    monkeypatch.setattr(bulk_import, "_MAX_ROWS_ON_SQLITE", 1)
    monkeypatch.setattr(bulk_import, "MAX_TAXPAYERS", 1)
    path = write(file, "C0000000001;;One;", "C0000000002;;Two;")
    assert error_of("import_registry", path) == "The file has more than 1 rows. Split it."


@pytest.mark.slow
@pytest.mark.long
def test_a_hundred_thousand_rows_are_imported(file: Path) -> None:
    rows = (f"C{n:010};{'' if n % 3 else f'R-{n:05}'};Company {n} Sdn Bhd;" for n in range(MANY))
    path = write(file, *rows)
    with CaptureQueriesContext(connection) as queries:
        assert json_output_of("import_registry", path)["registered"] == MANY
    assert len(queries) < MANY / 30
    assert Taxpayer.objects.count() == Change.objects.count() == MANY
    last = Taxpayer.objects.get(name=f"Company {MANY - 1} Sdn Bhd")
    assert Change.objects.get(object_type="taxpayer", object_id=str(last.pk)).after == {
        "tin": last.tin,
        "rob": last.rob,
        "name": last.name,
        "is_active": True,
    }
    assert json_output_of("import_registry", path)["unchanged"] == MANY
