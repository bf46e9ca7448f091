"""A separate program: an XLSX workbook on stdin becomes CSV on stdout, in UTF-8.

A workbook is a zip archive of XML that was sent. A few kilobytes of it can unpack to
gigabytes, and two cells far apart make the library ask for half a terabyte and abort its process.
So the archive is checked first, as it unpacks and not as it declares, and then read here, where the
kernel limits memory and time: whatever a workbook does, the service goes on.

It runs as a file, so it imports nothing of ours.
"""

import csv
import errno
import io
import os
import resource
import sys
import zipfile
from datetime import date, datetime
from enum import IntEnum
from typing import BinaryIO, TextIO
from xml.parsers import expat

from python_calamine import CalamineWorkbook

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 20
MAX_CSV_BYTES = 64 << 20

MAX_ENTRIES = 1_000
MAX_UNPACKED_BYTES = 128 << 20
# A table of taxpayers packs 5 to 40 times; zip itself reaches 1,032. Small files may pack better.
MAX_RATIO, _ANY_RATIO_BYTES = 200, 1 << 20
MAX_CELLS = 3_200_000
# The smallest rectangle that holds every value; the library needs 32 bytes for each of its cells.
MAX_AREA = 8_000_000

_ENTRY_SIGNATURE = b"PK\x01\x02"
_SHEETS = "xl/worksheets/"
_CHUNK_BYTES = 1 << 16
_LOW_PRIORITY = 10
# A line break in a cell must not become a new line of the file. As a control character it is
# refused later, with its line.
_LINE_BREAKS = str.maketrans({"\n": "\v", "\r": None})


class Outcome(IntEnum):
    """The exit status. Python itself exits with 1 after any exception."""

    CONVERTED = 0
    UNREADABLE = 1
    TOO_LARGE = 3


class TooLargeError(Exception):
    """The workbook would take more than it may."""


# --- The archive ----------------------------------------------------------------------------------


def check_archive(workbook: BinaryIO) -> None:
    """Unpack every entry once, and keep nothing.

    Raises TooLargeError beyond one of the limits above, and any other exception if the archive or a
    sheet is malformed.
    """
    # Counted before zipfile makes an object for each; by chance it is in compressed data once in
    # 4 gigabytes.
    packed = workbook.read()
    if packed.count(_ENTRY_SIGNATURE) > MAX_ENTRIES:
        raise TooLargeError
    budget = min(MAX_UNPACKED_BYTES, max(_ANY_RATIO_BYTES, len(packed) * MAX_RATIO))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for entry in archive.infolist():
            is_sheet = entry.filename.lower().startswith(_SHEETS) and entry.filename.endswith("xml")
            sheet = _SheetCheck() if is_sheet else None
            with archive.open(entry) as unpacked:
                while chunk := unpacked.read(_CHUNK_BYTES):
                    budget -= len(chunk)
                    if budget < 0:
                        raise TooLargeError
                    if sheet:
                        sheet.feed(chunk)
            if sheet:
                sheet.close()
    workbook.seek(0)


class _SheetCheck:
    """How many cells a sheet has, and how far apart its values are; reads it as a stream."""

    def __init__(self) -> None:
        self._cells = self._row = self._column = self._last_row = self._last_column = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.StartDoctypeDeclHandler = _refuse_doctype

    def feed(self, chunk: bytes) -> None:
        self._parser.Parse(chunk, False)

    def close(self) -> None:
        self._parser.Parse(b"", True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name.rpartition(":")[2]:
            case "row":
                self._row, self._column = int(attributes.get("r", self._row + 1)), 0
            case "c":
                self._cells += 1
                if self._cells > MAX_CELLS:
                    raise TooLargeError
                place = attributes.get("r", "")
                self._column = _column(place) if place else self._column + 1
            case "v" | "is":  # a cell without a value, say a coloured one, is not read
                self._last_row = max(self._last_row, self._row)
                self._last_column = max(self._last_column, self._column)
                if self._last_row * self._last_column > MAX_AREA:
                    raise TooLargeError


def _refuse_doctype(*_declaration: object) -> None:
    raise ValueError("a sheet has no document type, and so no entities")


def _column(place: str) -> int:
    """The number of the column of a cell: 28 for AB3."""
    number = 0
    for letter in place.rstrip("0123456789"):
        number = number * 26 + int(letter, 36) - 9
    return number


# --- The first sheet ------------------------------------------------------------------------------


def write_first_sheet(workbook: BinaryIO, output: TextIO) -> None:
    """Write it as CSV, each row on the line of its number."""
    sheet = CalamineWorkbook.from_filelike(workbook).get_sheet_by_index(0)
    writer = csv.writer(output)
    for row in sheet.to_python(skip_empty_area=False):
        cells = [_text(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        writer.writerow(cells)


def _text(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float() if value.is_integer():
            return str(int(value))  # a spreadsheet stores a TIN of digits as a number
        case datetime() | date():
            return value.isoformat()
        case _:
            return str(value).translate(_LINE_BREAKS)


# --- The process ----------------------------------------------------------------------------------


def main() -> Outcome:
    """Convert stdin to stdout within the limits."""
    os.nice(_LOW_PRIORITY)
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, MAX_CSV_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        allowed = resource.getrlimit(kind)[1]
        limit = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (limit, limit))
    try:
        check_archive(sys.stdin.buffer)
        with io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="") as output:
            write_first_sheet(sys.stdin.buffer, output)
    except (TooLargeError, MemoryError):
        return Outcome.TOO_LARGE
    except OSError as fault:
        if fault.errno == errno.EFBIG:
            return Outcome.TOO_LARGE
        raise
    return Outcome.CONVERTED


if __name__ == "__main__":
    sys.exit(main())
