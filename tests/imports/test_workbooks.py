"""XLSX at the edge of the service: what it writes computes nothing, what it reads is kept apart."""

import io
import os
import time
from pathlib import Path

import pytest

from taxpayers.files import spreadsheets, workbook_program
from taxpayers.files.spreadsheets import workbook_to_csv, write_workbook
from taxpayers.validation import ServiceError
from tests.registry.workbooks import formulas_of, rows_of, workbook

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
    with write_workbook([["name"], HOSTILE], "x") as file:
        content = file.read()
    assert formulas_of(content) == 0
    assert b"hyperlink" not in content
    assert rows_of(content)[1] == HOSTILE


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> bytes:
    """A workbook read by this program instead of that of the service."""
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    monkeypatch.setattr(workbook_program, "__file__", str(path))
    return workbook_to_csv(io.BytesIO(workbook(["tin"])))


def test_the_program_that_reads_a_workbook_sees_no_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert os.environ["SECRET_KEY"]
    shown = run(
        monkeypatch, tmp_path, "import os, sys; print(list(os.environ), sys.flags.isolated)"
    )
    assert shown.split() in ([b"[]", b"1"], [b"['LC_CTYPE']", b"1"])


def test_a_workbook_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the kernel, when it computes; by the service, when it waits."""
    assert workbook_program.CPU_SECONDS < spreadsheets._WAIT_SECONDS < 30
    began = time.monotonic()
    with pytest.raises(ServiceError, match="too large"):
        run(monkeypatch, tmp_path, ENDLESS)
    assert time.monotonic() - began < spreadsheets._WAIT_SECONDS
    monkeypatch.setattr(spreadsheets, "_WAIT_SECONDS", 0.5)
    with pytest.raises(ServiceError, match="too large"):
        run(monkeypatch, tmp_path, "import time; time.sleep(60)")
