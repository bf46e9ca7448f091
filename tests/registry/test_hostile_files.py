"""Files that were made to do harm: each is refused with what to do, and takes little to refuse."""

import io
import itertools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from taxpayers.files import csv_reader, spreadsheets, workbook_program
from taxpayers.files.csv_reader import MAX_FILE_BYTES
from taxpayers.files.row_kinds import MAX_TAXPAYERS, TAXPAYERS
from taxpayers.files.rows import read_file
from taxpayers.files.spreadsheets import workbook_to_csv, write_workbook
from taxpayers.files.workbook_program import MEMORY_BYTES
from taxpayers.identifiers import Notation
from taxpayers.validation import ServiceError
from tests.registry.workbooks import SHEET, formulas_of, raw_workbook, rows_of, workbook
from tests.servers.processes import run_python

FAR = '<row r="1"><c r="A1"><v>1</v></c></row><row r="{0}"><c r="{1}{0}"><v>2</v></c></row>'
TOO_LARGE, UNREADABLE = "too large, or its values are far apart", "cannot be read as an XLSX"
HEADER = b"tin,name\n"
# Enough for Python, Django and the file; a hundredth of what these files would take.
OWN_MEMORY_BYTES, OWN_SECONDS = 600 << 20, 30


def zeros(megabytes: int) -> Iterator[str]:
    return itertools.repeat("0" * (1 << 20), megabytes)


def lying(content: bytes) -> bytes:
    """The archive with the declared size of its sheet replaced by 1 byte."""
    directory = content.rindex(b"PK\x01\x02", 0, content.rindex(SHEET.encode()))
    place = directory + 24
    return content[:place] + (1).to_bytes(4, "little") + content[place + 4 :]


FAR_APART: dict[str, Callable[[], bytes]] = {
    "two cells in opposite corners": lambda: raw_workbook(FAR.format(1_048_576, "XFD")),
    "a cell far below and some columns": lambda: raw_workbook(FAR.format(1_048_576, "AF")),
    "a place by its order": lambda: raw_workbook('<row r="9000000"><c><v>1</v></c></row>'),
    "packed beyond any table": lambda: raw_workbook(zeros(20)),
    "2,000 entries": lambda: raw_workbook("", others=((f"x/{n}", b"") for n in range(2_000))),
    "4,000,000 empty cells": lambda: raw_workbook(
        itertools.repeat("<row>" + "<c/>" * 1_000 + "</row>", 4_000)
    ),
}
NO_WORKBOOKS: dict[str, Callable[[], bytes]] = {
    "a declared size that lies": lambda: lying(raw_workbook(zeros(20))),
    "no XML": lambda: raw_workbook("<row><c>"),
    "no archive": lambda: b"PK\x03\x04 nothing",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAR_APART, *NO_WORKBOOKS])
def test_a_hostile_workbook_is_refused(name: str) -> None:
    make = (FAR_APART | NO_WORKBOOKS)[name]
    with pytest.raises(ServiceError, match=TOO_LARGE if name in FAR_APART else UNREADABLE):
        workbook_to_csv(io.BytesIO(make()))


@pytest.mark.slow
def test_a_workbook_never_takes_more_memory_than_it_may(tmp_path: Path) -> None:
    file = tmp_path / "hostile.xlsx"
    cells = "<row>" + '<c t="s"><v>0</v></c>' * 400 + "</row>"  # one long text in each
    file.write_bytes(raw_workbook(cells, shared="".join(f"{n:08}" for n in range(500_000))))
    taken = run(
        f"""
from taxpayers.files.spreadsheets import workbook_to_csv
from taxpayers.validation import ServiceError
try:
    workbook_to_csv(open({str(file)!r}, "rb"))
except ServiceError:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"""
    )
    assert 0 < int(taken) <= MEMORY_BYTES


def test_a_file_of_blank_lines_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_FILE_BYTES <= 256 << 20
    monkeypatch.setattr(csv_reader, "MAX_FILE_BYTES", 10_000)
    with pytest.raises(ServiceError, match="larger than 256 MiB"):
        read_file(io.BytesIO(HEADER + b"\n" * 20_000), Notation(), MAX_TAXPAYERS, TAXPAYERS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(b"C!,x", marks=pytest.mark.long),
        b'"' * 60_000,
        pytest.param(b"C0000000001,'\xcc\x81", marks=pytest.mark.long),
    ],
    ids=["bad rows", "quotation marks", "accents"],
)
def test_a_file_of_16_mib_takes_little_memory_and_time(row: bytes, tmp_path: Path) -> None:
    file = tmp_path / "hostile.csv"
    file.write_bytes(HEADER + (row + b"\n") * ((16 << 20) // (len(row) + 1)))
    run(
        f"""
from taxpayers.files.row_kinds import TAXPAYERS
from taxpayers.files.rows import read_file
from taxpayers.identifiers import Notation
from taxpayers.validation import ServiceError
resource.setrlimit(resource.RLIMIT_DATA, ({OWN_MEMORY_BYTES}, {OWN_MEMORY_BYTES}))
resource.setrlimit(resource.RLIMIT_CPU, ({OWN_SECONDS}, {OWN_SECONDS}))
try:
    read_file(open({str(file)!r}, "rb"), Notation(), 100_000, TAXPAYERS)
except ServiceError:
    pass"""
    )


def run(code: str) -> str:
    done = run_python(["-c", f"import resource, django\ndjango.setup()\n{code}"], os.environ)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


HOSTILE = ["=1+1", "+A1", "-A1", "@SUM(A1)", "{=1}", "https://example.org", "internal:A1", "007"]
# The program of the service, with one second instead of its twenty, and nothing that ends.
ENDLESS = f"""
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("program", {workbook_program.__file__!r})
program = module_from_spec(spec)
spec.loader.exec_module(program)
program.CPU_SECONDS = 1
def check_archive(workbook):
    while True: pass
program.check_archive = check_archive
sys.exit(program.main())
"""


def test_a_cell_is_a_text_and_never_a_formula_or_a_link() -> None:
    with write_workbook([["name"], HOSTILE], "names") as file:
        content = file.read()
    assert formulas_of(content) == 0
    assert b"hyperlink" not in content
    assert rows_of(content)[1] == HOSTILE


def read_by(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> bytes:
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    monkeypatch.setattr(workbook_program, "__file__", str(path))
    return workbook_to_csv(io.BytesIO(workbook(["tin"])))


def test_the_program_that_reads_a_workbook_sees_no_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert os.environ["SECRET_KEY"]
    shown = read_by(
        monkeypatch, tmp_path, "import os, sys; print(list(os.environ), sys.flags.isolated)"
    )
    assert shown.split() in ([b"[]", b"1"], [b"['LC_CTYPE']", b"1"])


def test_a_workbook_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the kernel, when it computes; by the service, when it waits."""
    assert workbook_program.CPU_SECONDS < spreadsheets._WAIT_SECONDS < 30
    monkeypatch.setattr(spreadsheets, "_WAIT_SECONDS", 60)
    began = time.monotonic()
    with pytest.raises(ServiceError, match="too large"):
        read_by(monkeypatch, tmp_path, ENDLESS)
    assert time.monotonic() - began < 60  # it was not the service
    monkeypatch.setattr(spreadsheets, "_WAIT_SECONDS", 0.5)
    with pytest.raises(ServiceError, match="too large"):
        read_by(monkeypatch, tmp_path, "import time; time.sleep(60)")
