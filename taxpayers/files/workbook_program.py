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

from python_calamine import CalamineWorkbook

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 20
MAX_CSV_BYTES = 64 << 20

MAX_ENTRIES = 1_000
MAX_UNPACKED_BYTES = 128 << 20
# A table of taxpayers packs 5 to 40 times; zip itself reaches 1,032. Small files may pack better.
MAX_RATIO, _ANY_RATIO_BYTES = 200, 1 << 20
# The smallest rectangle with A1 that holds every value.
MAX_CELLS = 8_000_000

_ENTRY_SIGNATURE = b"PK\x01\x02"
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
    """Unpack every entry once. Raises TooLargeError, or any error if it is malformed."""
    # Counted before zipfile makes an object for each; data has it by chance once in 4 gigabytes.
    packed = workbook.read()
    if packed.count(_ENTRY_SIGNATURE) > MAX_ENTRIES:
        raise TooLargeError
    budget = min(MAX_UNPACKED_BYTES, max(_ANY_RATIO_BYTES, len(packed) * MAX_RATIO))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for entry in archive.infolist():
            with archive.open(entry) as unpacked:
                while chunk := unpacked.read(_CHUNK_BYTES):
                    budget -= len(chunk)
                    if budget < 0:
                        raise TooLargeError
    workbook.seek(0)


# --- The first sheet ------------------------------------------------------------------------------


def write_first_sheet(workbook: BinaryIO, output: TextIO) -> None:
    """Write it as CSV, each row on the line of its number."""
    sheet = CalamineWorkbook.from_filelike(workbook).get_sheet_by_index(0)
    last_row, last_column = sheet.end or (0, 0)
    if (last_row + 1) * (last_column + 1) > MAX_CELLS:
        raise TooLargeError
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
