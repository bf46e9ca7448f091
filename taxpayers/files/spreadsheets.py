"""XLSX workbooks: converts the first sheet to CSV, and writes tables; both row by row.

A workbook is a zip archive of XML: its unpacked size is bounded, and defusedxml refuses entities.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO

import openpyxl
from django.utils.translation import gettext as _
from openpyxl.cell import WriteOnlyCell

from taxpayers.validation import ServiceError

MAX_ROWS_WRITTEN = 100_000
_MAX_UNPACKED_BYTES = 256 << 20
_MAX_ROWS, _MAX_COLUMNS = 1_048_576, 32
# A line break in a cell must not become a new line of the file. As a control character it is
# refused later, with its line.
_LINE_BREAKS = str.maketrans({"\n": "\v", "\r": None})
assert openpyxl.DEFUSEDXML, "openpyxl reads untrusted XML: install defusedxml"  # noqa: S101


def workbook_to_csv(workbook: BinaryIO) -> bytes:
    """The first sheet as CSV in UTF-8, each row on the line of its number.

    Raises ServiceError if it cannot be read.
    """
    try:
        with zipfile.ZipFile(workbook) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked <= _MAX_UNPACKED_BYTES:
            return _first_sheet(workbook)
    except ServiceError:
        raise
    except Exception:  # noqa: BLE001 - openpyxl raises any exception for a broken file
        raise ServiceError(
            _("The file cannot be read as an XLSX workbook. Open it and save it again.")
        ) from None
    raise ServiceError(_("The workbook is too large. Keep only the sheet with the taxpayers."))


def _first_sheet(file: BinaryIO) -> bytes:
    workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
    try:
        text = io.StringIO()
        writer = csv.writer(text)
        rows = workbook.worksheets[0].iter_rows(max_col=_MAX_COLUMNS, values_only=True)
        for number, row in enumerate(rows, start=1):
            if number > _MAX_ROWS:
                raise ServiceError(_("The first sheet has too many rows. Split it."))
            cells = [_text(value) for value in row]
            while cells and not cells[-1]:
                cells.pop()
            writer.writerow(cells)
        return text.getvalue().encode()
    finally:
        workbook.close()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # a spreadsheet stores a TIN of digits as a number
    if isinstance(value, datetime | date):
        return value.isoformat()
    return "" if value is None else str(value).translate(_LINE_BREAKS)


def write_workbook(rows: Iterable[Sequence[str]], title: str) -> IO[bytes]:
    """A temporary XLSX file, open at its beginning; all cells are texts."""
    workbook = openpyxl.Workbook(write_only=True)
    sheet = workbook.create_sheet(title[:31])
    sheet.freeze_panes = "A2"
    for row in rows:
        cells = [WriteOnlyCell(sheet, value=_printable(text)) for text in row]
        for cell in cells:
            cell.data_type = "s"  # never a formula, whatever it begins with
        sheet.append(cells)
    file = TemporaryFile()  # noqa: SIM115 - the caller closes it
    workbook.save(file)
    file.seek(0)
    return file


def _printable(text: str) -> str:
    """Without the characters that XML 1.0 does not allow."""
    return openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("?", text)
