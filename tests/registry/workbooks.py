"""XLSX workbooks for tests: as a spreadsheet saves them, as it shows them, and hostile ones."""

import io
import zipfile
from collections.abc import Iterable
from typing import Any

import xlsxwriter
from python_calamine import CalamineWorkbook

SHEET = "xl/worksheets/sheet1.xml"
_TEXTS = "xl/sharedStrings.xml"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def workbook(*rows: list[Any]) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
    return file.getvalue()


def rows_of(content: bytes) -> list[list[Any]]:
    return CalamineWorkbook.from_filelike(io.BytesIO(content)).get_sheet_by_index(0).to_python()


def formulas_of(content: bytes) -> int:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(SHEET).count(b"<f>")


def raw_workbook(
    cells: str | Iterable[str], shared: str = "", others: Iterable[tuple[str, bytes]] = ()
) -> bytes:
    """A workbook whose only sheet has this XML as its data; nothing is checked."""
    file, right = io.BytesIO(), zipfile.ZipFile(io.BytesIO(workbook(["a text"])))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in {*right.namelist()} - {SHEET, _TEXTS}:
            archive.writestr(name, right.read(name))
        archive.writestr(_TEXTS, f'<sst xmlns="{_MAIN}"><si><t>{shared}</t></si></sst>')
        with archive.open(SHEET, "w", force_zip64=True) as sheet:
            sheet.write(f'<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
            for part in [cells] if isinstance(cells, str) else cells:
                sheet.write(part.encode())
            sheet.write(b"</sheetData></worksheet>")
        for name, content in others:
            archive.writestr(name, content)
    return file.getvalue()
