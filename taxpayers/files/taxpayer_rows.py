"""Taxpayers in a CSV file: reads all rows and names every bad one (contract 6).

The columns are `tin` and `name`, and where wanted `rob` and `active` (yes or no). Reading asks no
database and changes nothing.
"""

from dataclasses import dataclass, field
from typing import BinaryIO

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from taxpayers.files.csv_reader import Row, read_rows
from taxpayers.identifiers import (
    ROB_PATTERN,
    TIN_PATTERN,
    MalformedIdentifier,
    Notation,
    TaxpayerId,
)
from taxpayers.validation import ServiceError, validate_name

MOST_ROWS = 500_000
COLUMNS, OPTIONAL = ("tin", "name"), ("rob", "active")
# What an export and a list of bad rows have besides: so both can be sent in again.
IGNORED = ("line", "fault", "registered_at")
_ACTIVE = {"": None, "yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
# Who keeps a table reads no regular expressions. A country's own pattern is shown as it is.
_IN_WORDS = {
    TIN_PATTERN: gettext_noop("the {kind} must be 5 to 20 letters and digits"),
    ROB_PATTERN: gettext_noop("the {kind} must be 5 to 20 letters, digits and hyphens"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One taxpayer of the file. `is_active` is None where the file does not say."""

    line: int
    taxpayer: TaxpayerId
    name: str
    is_active: bool | None


@dataclass(frozen=True, slots=True, order=True)
class BadRow:
    """A row that cannot be taken, and why."""

    line: int
    fault: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.fault}"


@dataclass(frozen=True, slots=True)
class Reading:
    """All rows of a file, good and bad, each in the file's order."""

    entries: list[Entry] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)


def read_entries(file: BinaryIO, notation: Notation, most_rows: int = MOST_ROWS) -> Reading:
    """Every row of the file; the second row of the same taxpayer is a bad one.

    Raises ServiceError if the file as a whole cannot be read.
    """
    reading, first_lines = Reading(), dict[TaxpayerId, int]()
    for count, row in enumerate(read_rows(file, COLUMNS, OPTIONAL, IGNORED), start=1):
        if count > most_rows:
            raise ServiceError(
                _("The file has more than {most} rows: split it.").format(most=most_rows)
            )
        try:
            entry = _entry(row, notation)
            first = first_lines.setdefault(entry.taxpayer, row.line)
            if first != row.line:
                raise ServiceError(
                    _("{taxpayer} stands in line {line} already").format(
                        taxpayer=entry.taxpayer, line=first
                    )
                )
            reading.entries.append(entry)
        except MalformedIdentifier as fault:
            reading.bad_rows.append(BadRow(row.line, _said(fault)))
        except ServiceError as fault:
            reading.bad_rows.append(BadRow(row.line, str(fault).rstrip(".")))
    if not reading.entries and not reading.bad_rows:
        raise ServiceError(_("The file has no rows below its header."))
    return reading


def _said(fault: MalformedIdentifier) -> str:
    text = _IN_WORDS.get(fault.pattern, fault.text)
    return _(text).format(kind=_(fault.kind), pattern=fault.pattern)


def _entry(row: Row, notation: Notation) -> Entry:
    if row.fault:
        raise ServiceError(row.fault)
    active = row.cells.get("active", "").lower()
    if active not in _ACTIVE:
        raise ServiceError(
            _("active must be yes or no, not {given}").format(given=repr(active[:20]))
        )
    return Entry(
        line=row.line,
        taxpayer=notation.parse_parts(row.cells["tin"], row.cells.get("rob", "")),
        name=validate_name(row.cells["name"]),
        is_active=_ACTIVE[active],
    )
