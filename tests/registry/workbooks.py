"""XLSX workbooks for tests: as a spreadsheet saves them, as it shows them, and as nobody should."""

import io
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import xlsxwriter
from python_calamine import CalamineWorkbook

SHEET = "xl/worksheets/sheet1.xml"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def workbook(*rows: list[Any]) -> bytes:
    """These rows as a spreadsheet saves them."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
    return file.getvalue()


def rows_of(content: bytes) -> list[list[Any]]:
    """Every row of the first sheet, as a spreadsheet shows it."""
    return CalamineWorkbook.from_filelike(io.BytesIO(content)).get_sheet_by_index(0).to_python()


def formulas_of(content: bytes) -> int:
    """How many cells of the first sheet a spreadsheet computes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(SHEET).count(b"<f>")


def raw_workbook(
    cells: str | Iterable[str], shared: str = "", others: Iterable[tuple[str, bytes]] = ()
) -> bytes:
    """A workbook whose only sheet has this XML as its data; nothing is checked."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _frame(shared):
            archive.writestr(name, text)
        with archive.open(SHEET, "w", force_zip64=True) as sheet:
            sheet.write(f'<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
            for part in [cells] if isinstance(cells, str) else cells:
                sheet.write(part.encode())
            sheet.write(b"</sheetData></worksheet>")
        for name, content in others:
            archive.writestr(name, content)
    return file.getvalue()


def _frame(shared: str) -> Iterator[tuple[str, str]]:
    yield (
        "[Content_Types].xml",
        f'<Types xmlns="{_TYPES}"><Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_KIND}.sheet.main+xml"/>'
        f'<Override PartName="/{SHEET}" ContentType="{_KIND}.worksheet+xml"/></Types>',
    )
    yield (
        "_rels/.rels",
        f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1"'
        f' Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    )
    yield (
        "xl/workbook.xml",
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="One" sheetId="1" r:id="r1"/></sheets></workbook>',
    )
    yield (
        "xl/_rels/workbook.xml.rels",
        f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" Type="{_OFFICE}/worksheet"'
        f' Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type="{_OFFICE}/sharedStrings"'
        ' Target="sharedStrings.xml"/></Relationships>',
    )
    yield "xl/sharedStrings.xml", f'<sst xmlns="{_MAIN}"><si><t>{shared}</t></si></sst>'
