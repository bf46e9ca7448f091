"""XLSX workbooks: converts the first sheet to CSV, in a separate process; writes tables."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO

import xlsxwriter

from taxpayers.files import workbook_program
from taxpayers.files.workbook_program import Outcome
from taxpayers.validation import ServiceError

MAX_ROWS_WRITTEN = 100_000
_MAX_CELL_LENGTH = 32_767  # that of the format
# The server waits 30 seconds for the beginning of an answer (identity/server/limits.py).
_WAIT_SECONDS = 25
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def workbook_to_csv(workbook: BinaryIO) -> bytes:
    """The first sheet in UTF-8, each row on the line of its number. Raises ServiceError."""
    with TemporaryFile() as sent, TemporaryFile() as converted:
        shutil.copyfileobj(workbook, sent)
        sent.seek(0)
        match _convert(sent, converted):
            case Outcome.CONVERTED:
                converted.seek(0)
                return converted.read()
            case Outcome.TOO_LARGE:
                raise ServiceError(
                    "The workbook is too large, or its values are far apart. Keep only the"
                    " sheet with the table, and nothing beside or below it."
                )
            case _:
                raise ServiceError(
                    "The file cannot be read as an XLSX workbook. Open it and save it again."
                )


def _convert(workbook: IO[bytes], converted: IO[bytes]) -> int:
    program = Path(workbook_program.__file__)
    try:
        done = subprocess.run(  # noqa: S603 - our own program; without our environment
            [sys.executable, "-I", str(program)],
            stdin=workbook,
            stdout=converted,
            stderr=subprocess.DEVNULL,
            timeout=_WAIT_SECONDS,
            env={},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome.TOO_LARGE
    # A signal: the library aborted for want of memory, or the kernel ended it for want of time.
    return done.returncode if done.returncode >= 0 else Outcome.TOO_LARGE


def write_workbook(rows: Iterable[Sequence[str]], title: str) -> IO[bytes]:
    """A temporary XLSX file of texts, open at its beginning; the same for the same rows."""
    file = TemporaryFile()  # noqa: SIM115 - the caller closes it
    with xlsxwriter.Workbook(file, {"constant_memory": True}) as workbook:
        workbook.set_properties({"created": datetime(1980, 1, 1, tzinfo=UTC)})
        sheet = workbook.add_worksheet(title)
        sheet.freeze_panes(1, 0)
        for number, row in enumerate(rows):
            for column, text in enumerate(row):
                sheet.write_string(number, column, _printable(text))
    file.seek(0)
    return file


def _printable(text: str) -> str:
    """What a cell can hold: without the characters that XML 1.0 does not allow."""
    return _NOT_IN_XML.sub("?", text[:_MAX_CELL_LENGTH])
