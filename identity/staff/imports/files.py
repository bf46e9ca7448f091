"""Files of an import to download: the template of a kind, and the rows with errors."""

import io
from collections.abc import Iterator

from django.http.response import HttpResponseBase

from identity.staff.framework.export import as_csv, as_workbook
from taxpayers.files.csv_reader import escape_formula, read_cells
from taxpayers.files.rows import BESIDE_BAD_ROWS, IGNORED, Columns
from taxpayers.models import UploadedFile
from taxpayers.services import ImportPreview


def template_file(columns: Columns, name: str, form: str) -> HttpResponseBase:
    """A table with the names of the columns only: as XLSX if asked for, otherwise as CSV."""
    rows = iter([list(columns.all)])
    return as_workbook(rows, f"{name}.xlsx") if form == "xlsx" else as_csv(rows, f"{name}.csv")


def bad_rows_file(
    upload: UploadedFile, columns: Columns, content: bytes, preview: ImportPreview
) -> HttpResponseBase:
    """The rows with errors as they were uploaded, each with its line and error, to be corrected."""
    stem = upload.name.rpartition(".")[0] or upload.name
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"errors in {stem}.csv")
    return as_csv(_bad_rows(columns, content, preview), name)


def _bad_rows(columns: Columns, content: bytes, preview: ImportPreview) -> Iterator[list[str]]:
    faults = {row.line: row.fault for row in preview.bad_rows}
    ignored = (*IGNORED, *columns.ignored)
    rows = read_cells(io.BytesIO(content), columns.needed, columns.optional, ignored)
    _line, named = next(rows)
    own = [number for number, column in enumerate(named) if column not in IGNORED]
    yield [*BESIDE_BAD_ROWS, *(named[number] for number in own)]
    for line, cells in rows:
        if line in faults:
            sent = [cells[n] for n in range(len(cells)) if n in own or n >= len(named)]
            yield [str(line), escape_formula(faults[line]), *map(escape_formula, sent)]
