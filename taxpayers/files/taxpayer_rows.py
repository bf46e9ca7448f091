"""Taxpayers in a file: `tin`, `name`, and optionally `rob` and `active` (contract 6)."""

from typing import BinaryIO

from taxpayers.files.csv_reader import CsvRow
from taxpayers.files.rows import Columns, ParsedFile, read_file, yes_or_no
from taxpayers.identifiers import Notation, TaxpayerId
from taxpayers.validation import validate_name
from taxpayers.value import Value

MAX_ROWS = 500_000
COLUMNS = Columns(("tin", "name"), ("rob", "active"), ignored=("registered_at",))


class TaxpayerRow(Value):
    """One taxpayer of the file. `is_active` is None if its cell is empty or missing."""

    line: int
    taxpayer: TaxpayerId
    name: str
    is_active: bool | None = None

    @property
    def key(self) -> str:
        return str(self.taxpayer)

    @property
    def shown(self) -> tuple[str, ...]:
        active = "no" if self.is_active is False else "yes"
        return self.taxpayer.tin, self.name, self.taxpayer.rob, active


def read_taxpayers(
    file: BinaryIO, notation: Notation, max_rows: int = MAX_ROWS
) -> ParsedFile[TaxpayerRow]:
    """Every row of the file. Raises ServiceError if the file as a whole cannot be read."""
    return read_file(file, notation, max_rows, columns=COLUMNS, parse=_parse)


def _parse(row: CsvRow, notation: Notation) -> TaxpayerRow:
    is_active = yes_or_no(row, "active")
    return TaxpayerRow(
        line=row.line,
        taxpayer=notation.parse_parts(row.cells["tin"], row.cells.get("rob", "")),
        name=validate_name(row.cells["name"]),
        is_active=is_active,
    )
