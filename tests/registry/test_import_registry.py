"""Taxpayers in bulk: all of a file or none, safe to repeat, fast (contract 6)."""

import io
import json
import os
import pty
import subprocess
import sys
import termios
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from taxpayers.files.taxpayer_rows import Reading, read_entries
from taxpayers.identifiers import Notation, TaxpayerId
from taxpayers.models import Change, Taxpayer
from taxpayers.services import (
    Author,
    BadRows,
    Imported,
    ServiceError,
    import_registry,
    preview_registry,
)
from taxpayers.services import registry as registry_service
from tests.support import servers
from tests.support.command_line import answered, refused, said
from tests.support.factories import TaxpayerFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MANY = 100_000
SECONDS = 60  # about 8 on an idle machine; three times as many rows would be noticed


def reading(*rows: str) -> Reading:
    text = "\n".join(["tin,rob,name,active", *rows])
    return read_entries(io.BytesIO(text.encode()), Notation())


def run(read: Reading, **options: Any) -> Imported:
    return import_registry(reading=read, source="x.csv", by=Author("alice"), at=AT, **options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "march.csv"


def write(file: Path, *rows: str) -> str:
    file.write_text("\n".join(["tin;rob;name;active", *rows, ""]), encoding="utf-8-sig")
    return str(file)


# --- The service --------------------------------------------------------------------------------


def test_all_rows_become_taxpayers() -> None:
    done = run(reading("C0000000001,,One,", "C0000000002,R-123,Two,no", "C0000000003,,Three,yes"))
    assert done == Imported(registered=3, unchanged=0)
    rows = [
        (row.identifier, row.name, row.is_active, row.created_at)
        for row in Taxpayer.objects.order_by("tin")
    ]
    assert rows == [
        (TaxpayerId("C0000000001"), "One", True, AT),
        (TaxpayerId("C0000000002", "R-123"), "Two", False, AT),
        (TaxpayerId("C0000000003"), "Three", True, AT),
    ]
    assert Change.objects.filter(action="import_registry", reason="file x.csv").count() == 3


def test_what_is_registered_already_is_counted_and_left_alone() -> None:
    TaxpayerFactory.create(tin="C0000000001", name="One")
    TaxpayerFactory.create(tin="C0000000002", name="Two", is_active=False)
    TaxpayerFactory.create(tin="C0000000003", rob="R-123", name="Another of that TIN")
    rows = ("C0000000001,,One,yes", "C0000000002,,Two,", "C0000000003,,Three,")
    assert run(reading(*rows)) == Imported(registered=1, unchanged=2)
    assert run(reading(*rows)) == Imported(registered=0, unchanged=3)
    assert not Taxpayer.objects.get(tin="C0000000002").is_active
    assert Change.objects.count() == 1


def test_one_bad_row_is_enough_and_all_are_named_in_the_files_order() -> None:
    TaxpayerFactory.create(tin="C0000000001", name="One")
    TaxpayerFactory.create(tin="C0000000002", name="Two", is_active=False)
    with pytest.raises(BadRows) as fault:
        run(
            reading(
                "C0000000009,,Good,",
                "C0000000001,,Other,",
                "x,,Bad,",
                "C0000000002,,Two,yes",
                "C0000000009,,Good,",
            )
        )
    assert str(fault.value) == "4 of 5 rows are bad. Nothing has been imported."
    assert [str(row) for row in fault.value.bad_rows] == [
        "line 3: C0000000001 is registered already, under the name One",
        "line 4: the TIN must be 5 to 20 letters and digits",
        "line 5: C0000000002 is registered already, and is not active",
        "line 6: C0000000009 stands in line 2 already",
    ]
    assert Taxpayer.objects.count() == 2
    assert not Change.objects.exists()


def test_a_preview_says_what_an_import_would_do_and_changes_nothing() -> None:
    TaxpayerFactory.create(tin="C0000000001", name="One")
    TaxpayerFactory.create(tin="C0000000002", name="Two")
    read = reading("C0000000003,,New,", "C0000000001,,One,", "C0000000002,,Other,", "x,,Bad,")
    preview = preview_registry(reading=read)
    assert [entry.line for entry in preview.new] == [2]
    assert preview.unchanged == 1
    assert [row.line for row in preview.bad_rows] == [4, 5]
    assert Taxpayer.objects.count() == 2
    assert not Change.objects.exists()


def test_a_bad_row_in_the_last_batch_undoes_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_service, "_BATCH", 2)
    TaxpayerFactory.create(tin="C0000000005", name="Five")
    counted: list[int] = []
    rows = [f"C{n:010},,Company {n}," for n in range(1, 6)]
    with pytest.raises(BadRows):
        run(reading(*rows), progress=counted.append)
    assert counted == [2, 2, 1]
    assert Taxpayer.objects.count() == 1


def test_somebody_who_registers_the_same_meanwhile_undoes_it_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compare = registry_service._compare

    def compare_too_early(batch: Any) -> Any:
        outcome = compare(batch)
        TaxpayerFactory.create(tin="C0000000001", name="One")
        return outcome

    monkeypatch.setattr(registry_service, "_compare", compare_too_early)
    with pytest.raises(ServiceError, match="Somebody else registered"):
        run(reading("C0000000001,,One,"))
    assert not Taxpayer.objects.exists()


# --- The command --------------------------------------------------------------------------------


def test_import_registry_says_how_many_are_new_and_is_safe_to_repeat(file: Path) -> None:
    path = write(file, "C0000000001;;One;", "C0000000002;R-123;Two;")
    assert said("import_registry", path) == "2 taxpayers are registered; 0 were already.\n"
    assert answered("import_registry", path) == {"registered": 0, "unchanged": 2, "bad_rows": []}
    assert set(Change.objects.values_list("reason", flat=True)) == {"file march.csv"}


def test_import_registry_names_every_bad_row_to_people(file: Path) -> None:
    path = write(file, "x;;Bad;", "C0000000001;;Good;", "C0000000002;;;")
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match=r"^2 of 3 rows are bad. Nothing has been imported.$"):
        call_command("import_registry", path, stdout=out, stderr=err)
    assert out.getvalue() == ""
    assert err.getvalue() == (
        "line 2: the TIN must be 5 to 20 letters and digits\n"
        "line 4: Give a name: it is missing or blank\n"
    )
    assert not Taxpayer.objects.exists()


def test_import_registry_names_every_bad_row_to_machines(file: Path) -> None:
    path = write(file, "x;;Bad;", "C0000000001;;Good;")
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match="1 of 2 rows are bad"):
        call_command("import_registry", path, "--json", stdout=out, stderr=err)
    assert json.loads(out.getvalue()) == {
        "registered": 0,
        "unchanged": 0,
        "bad_rows": [{"line": 2, "fault": "the TIN must be 5 to 20 letters and digits"}],
    }
    assert err.getvalue() == ""


def test_import_registry_refuses_what_is_no_such_file(tmp_path: Path, file: Path) -> None:
    file.write_bytes(b"")
    for path, line in {
        tmp_path / "nowhere.csv": f"{tmp_path}/nowhere.csv cannot be read: No such file or direct",
        tmp_path: f"{tmp_path} cannot be read: Is a directory.",
        file: "The file is empty, or its first line is.",
        Path(sys.executable): "Line 1 is ",
    }.items():
        assert refused("import_registry", str(path)).startswith(line)


# --- Many ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_imported_in_one_transaction_in_time(file: Path) -> None:
    rows = (f"C{n:010};{'' if n % 3 else f'R-{n:05}'};Company {n} Sdn Bhd;" for n in range(MANY))
    path = write(file, *rows)
    begun = time.monotonic()
    assert answered("import_registry", path)["registered"] == MANY
    assert time.monotonic() - begun < SECONDS
    assert Taxpayer.objects.count() == Change.objects.count() == MANY
    begun = time.monotonic()
    assert answered("import_registry", path)["unchanged"] == MANY
    assert time.monotonic() - begun < SECONDS


def test_a_big_import_asks_few_queries(file: Path) -> None:
    path = write(file, *(f"C{n:010};;Company {n};" for n in range(9000)))
    with_queries = connection.force_debug_cursor
    connection.force_debug_cursor = True
    try:
        before = len(connection.queries)
        answered("import_registry", path)
        asked = len(connection.queries) - before
    finally:
        connection.force_debug_cursor = with_queries
    assert asked < 9000 / 30


@pytest.mark.processes
def test_the_progress_bar_is_shown_on_a_terminal_and_only_there(tmp_path: Path, file: Path) -> None:
    environment = servers.service_environment(tmp_path, servers.free_port())
    servers.manage(environment, "migrate", "-v0")
    command = [sys.executable, "manage.py", "import_registry"]
    terminal, stderr = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    done = subprocess.run(
        [*command, write(file, "C0000000001;;One;")],
        cwd=servers.CHECKOUT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        check=True,
    )
    os.close(stderr)
    assert done.stdout == b"1 taxpayers are registered; 0 were already.\n"
    assert b"100%" in os.read(terminal, 4096)
    os.close(terminal)
    done = subprocess.run(
        [*command, write(file, "C0000000002;;Two;")],
        cwd=servers.CHECKOUT,
        env=environment,
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
