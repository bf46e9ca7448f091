"""Taxpayers in a CSV file: reads all rows and names every bad one (contract 6).

The columns are `tin` and `name`, and optionally `rob` and `active` (yes or no). Reading does not
use the database.
"""

from dataclasses import dataclass, field
from typing import BinaryIO

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from taxpayers.files.csv_reader import CsvRow, read_rows
from taxpayers.identifiers import (
    ROB_PATTERN,
    TIN_PATTERN,
    MalformedIdentifier,
    Notation,
    TaxpayerId,
)
from taxpayers.validation import ServiceError, validate_name

MAX_ROWS = 500_000
COLUMNS, OPTIONAL = ("tin", "name"), ("rob", "active")
# Further columns of an export and of a list of bad rows, so that both can be imported again.
IGNORED = ("line", "fault", "registered_at")
_ACTIVE = {"": None, "yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
# People who make tables do not read regular expressions. Another country's pattern is shown.
_DESCRIPTIONS = {
    TIN_PATTERN: gettext_noop("the {kind} must be 5 to 20 letters and digits"),
    ROB_PATTERN: gettext_noop("the {kind} must be 5 to 20 letters, digits and hyphens"),
}


@dataclass(frozen=True, slots=True)
class TaxpayerRow:
    """One taxpayer of the file. `is_active` is None if its cell is empty or missing."""

    line: int
    taxpayer: TaxpayerId
    name: str
    is_active: bool | None


@dataclass(frozen=True, slots=True, order=True)
class BadRow:
    """A row that cannot be imported, and why."""

    line: int
    fault: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.fault}"


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """All rows of a file, good and bad, each in the file's order."""

    rows: list[TaxpayerRow] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)


def read_taxpayers(file: BinaryIO, notation: Notation, max_rows: int = MAX_ROWS) -> ParsedFile:
    """Every row of the file; a second row of the same taxpayer is a bad one.

    Raises ServiceError if the file as a whole cannot be read.
    """
    parsed, first_lines = ParsedFile(), dict[TaxpayerId, int]()
    for count, csv_row in enumerate(read_rows(file, COLUMNS, OPTIONAL, IGNORED), start=1):
        if count > max_rows:
            raise ServiceError(
                _("The file has more than {most} rows. Split it.").format(most=max_rows)
            )
        try:
            row = _taxpayer_row(csv_row, notation)
            first = first_lines.setdefault(row.taxpayer, row.line)
            if first != row.line:
                raise ServiceError(
                    _("{taxpayer} is already in line {line}").format(
                        taxpayer=row.taxpayer, line=first
                    )
                )
            parsed.rows.append(row)
        except MalformedIdentifier as fault:
            parsed.bad_rows.append(BadRow(csv_row.line, _describe(fault)))
        except ServiceError as fault:
            parsed.bad_rows.append(BadRow(csv_row.line, str(fault).rstrip(".")))
    if not parsed.rows and not parsed.bad_rows:
        raise ServiceError(_("The file has no rows below its header."))
    return parsed


def _describe(fault: MalformedIdentifier) -> str:
    text = _DESCRIPTIONS.get(fault.pattern, fault.text)
    return _(text).format(kind=_(fault.kind), pattern=fault.pattern)


def _taxpayer_row(row: CsvRow, notation: Notation) -> TaxpayerRow:
    if row.fault:
        raise ServiceError(row.fault)
    active = row.cells.get("active", "").lower()
    if active not in _ACTIVE:
        raise ServiceError(
            _("active must be yes or no, not {given}").format(given=repr(active[:20]))
        )
    return TaxpayerRow(
        line=row.line,
        taxpayer=notation.parse_parts(row.cells["tin"], row.cells.get("rob", "")),
        name=validate_name(row.cells["name"]),
        is_active=_ACTIVE[active],
    )
