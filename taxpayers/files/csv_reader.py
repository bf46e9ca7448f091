"""Reads CSV files as spreadsheets write them; each row comes with its line in the file.

UTF-8 with or without a byte order mark, commas or semicolons, blank rows between. Lines, rows and
the file itself are bounded, so that no file can exhaust memory or time. A text that begins like a
formula is exported with an apostrophe in front (OWASP, CSV injection); reading removes it.
"""

import csv
import re
from collections.abc import Collection, Iterator
from typing import BinaryIO

from django.utils.translation import gettext as _, gettext_lazy

from taxpayers.validation import ServiceError
from taxpayers.value import Value

# Programs of East Asian languages read the wide forms of these characters as the usual ones.
_SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20"
_FORMULA = re.compile(rf"[{_SIGNS}\t\r\n]")
_ESCAPED = re.compile(rf"\A'(?=[{_SIGNS}])")


def escape_formula(text: str) -> str:
    """The text as a cell that no spreadsheet runs."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(cell: str) -> str:
    """The text of a cell that `escape_formula` made; any other cell is unchanged."""
    return _ESCAPED.sub("", cell) if cell.startswith("'") else cell


_MAX_LINE_BYTES = 64 * 1024
# A cell in quotation marks may have several lines.
_MAX_ROW_BYTES = 256 * 1024
MAX_FILE_BYTES = 256 << 20
_DELIMITERS = ",;"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # the byte order mark of another encoding
SPREADSHEET_SIGNATURE = b"PK\x03\x04"  # .xlsx and .ods are zip archives
_SAVE_AS = gettext_lazy("Save it as CSV UTF-8 (spreadsheets offer that under Save as)")


class CsvRow(Value):
    """One row: its cells by the name of their column, without outer blanks."""

    line: int
    cells: dict[str, str]


def read_cells(
    file: BinaryIO,
    needed: Collection[str],
    optional: Collection[str],
    ignored: Collection[str] = (),
) -> Iterator[tuple[int, list[str]]]:
    """The names of the columns, then the cells of each row that is not blank, with their line.

    Raises ServiceError as soon as the file turns out to be malformed.
    """
    lines = _Lines(file)
    columns, delimiter = _header(next(lines, ""), needed, optional, ignored)
    yield 1, columns
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line = 2
    try:
        for cells in reader:
            lines.begin_row()
            if any(map(str.strip, cells)):
                yield line, cells
            line = reader.line_num + 2  # the reader did not count the header
    except csv.Error as fault:
        raise ServiceError(
            "Line {line} and what follows cannot be read as CSV: {fault}.", line=line, fault=fault
        ) from None


def named_cells(line: int, cells: list[str], columns: list[str]) -> CsvRow:
    """The row of these cells. Raises ServiceError for too few, or more that are not blank."""
    if len(cells) < len(columns):
        raise ServiceError(
            "it has {cells} cells, the header has {columns}", cells=len(cells), columns=len(columns)
        )
    if any(map(str.strip, cells[len(columns) :])):
        raise ServiceError(
            "it has more cells than the header, which has {columns}", columns=len(columns)
        )
    named = zip(columns, cells, strict=False)
    return CsvRow(line, {column: unescape_formula(cell.strip()) for column, cell in named})


def _header(
    line: str, needed: Collection[str], optional: Collection[str], ignored: Collection[str]
) -> tuple[list[str], str]:
    for delimiter in _DELIMITERS:
        columns = [cell.strip().strip('"').strip().lower() for cell in line.split(delimiter)]
        while columns and not columns[-1]:
            columns.pop()
        named = set(columns)
        if len(named) == len(columns) and set(needed) <= named <= {*needed, *optional, *ignored}:
            return columns, delimiter
    if not line.strip():
        raise ServiceError("The file is empty, or its first line is.")
    raise ServiceError(
        "The first line must name the columns {needed}, and optionally {optional},"
        " separated by commas or semicolons. It is: {line}",
        needed=", ".join(needed),
        optional=", ".join(optional),
        line=repr(line.strip()[:60]),
    )


class _Lines:
    """The lines of the file as texts. Raises ServiceError at the first that cannot be of CSV."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._number = self._bytes = self._bytes_before_row = 0

    def begin_row(self) -> None:
        """What follows is the next row, of at most _MAX_ROW_BYTES."""
        self._bytes_before_row = self._bytes

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline(_MAX_LINE_BYTES + 1)
        if not line:
            raise StopIteration
        self._number += 1
        self._bytes += len(line)
        if fault := self._fault(line):
            raise ServiceError(fault, line=self._number, save_as=_SAVE_AS)
        try:
            return line.decode("utf-8-sig" if self._number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise ServiceError(
                "Line {line} is not UTF-8. {save_as}.", line=self._number, save_as=_SAVE_AS
            ) from None

    def _fault(self, line: bytes) -> str:
        if self._number == 1 and line.startswith(SPREADSHEET_SIGNATURE):
            return _("This is a spreadsheet, not a CSV file. {save_as}.")
        if len(line) > _MAX_LINE_BYTES or self._bytes - self._bytes_before_row > _MAX_ROW_BYTES:
            return _("Line {line} is too long: this is not a CSV file. {save_as}.")
        if self._bytes > MAX_FILE_BYTES:
            return _("The file is larger than 256 MiB. Split it into smaller files.")
        if b"\0" in line and not line.startswith(_UTF_16):
            return _("Line {line} has a NUL character: this is not text in UTF-8. {save_as}.")
        return ""
