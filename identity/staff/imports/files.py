"""Files of an import to download: the template of a kind, and the rows with errors."""

import csv
import io
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase

from taxpayers.files.csv_reader import escape_formula, read_cells
from taxpayers.files.rows import BESIDE_BAD_ROWS, IGNORED, Columns
from taxpayers.files.spreadsheets import write_workbook
from taxpayers.models import UploadedFile
from taxpayers.services import ImportPreview

_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def template_file(columns: Columns, name: str, form: str) -> HttpResponseBase:
    """A table with the names of the columns only: as XLSX if asked for, otherwise as CSV."""
    if form == "xlsx":
        file = write_workbook([columns.all], name)
        return FileResponse(file, as_attachment=True, filename=f"{name}.xlsx", content_type=_XLSX)
    return _csv_file(f"{name}.csv", iter([list(columns.all)]))


def bad_rows_file(
    upload: UploadedFile, columns: Columns, content: bytes, preview: ImportPreview
) -> HttpResponse:
    """The rows with errors as they were uploaded, each with its line and error, to be corrected."""
    stem = upload.name.rpartition(".")[0] or upload.name
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"errors in {stem}.csv")
    return _csv_file(name, _bad_rows(columns, content, preview))


def _csv_file(name: str, rows: Iterator[list[Any]]) -> HttpResponse:
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name)}"
    response.write("\ufeff")  # so that a spreadsheet reads it as UTF-8
    csv.writer(response).writerows(rows)
    return response


def _bad_rows(columns: Columns, content: bytes, preview: ImportPreview) -> Iterator[list[Any]]:
    faults = {row.line: row.fault for row in preview.bad_rows}
    ignored = (*IGNORED, *columns.ignored)
    rows = read_cells(io.BytesIO(content), columns.needed, columns.optional, ignored)
    _line, named = next(rows)
    own = [number for number, column in enumerate(named) if column not in IGNORED]
    yield [*BESIDE_BAD_ROWS, *(named[number] for number in own)]
    for line, cells in rows:
        if line in faults:
            sent = [cells[n] for n in range(len(cells)) if n in own or n >= len(named)]
            yield [line, escape_formula(faults[line]), *map(escape_formula, sent)]
