"""A file as rows of a kind (`row_kinds`): every row read, every bad one named (contract 6)."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, Generic, TypeVar

from django.utils import timezone

from taxpayers.evidence import Evidence
from taxpayers.files.csv_reader import CsvRow, named_cells, read_cells
from taxpayers.identifiers import MalformedIdentifier, Notation, TaxpayerId
from taxpayers.moments import end_of_day, format_moment, parse_moment, start_of_day
from taxpayers.validation import ServiceError, rule_of
from taxpayers.value import Value

# Of every kind: what a list of bad rows has beside them, so that it can be imported again.
BESIDE_BAD_ROWS = ("line", "error")
IGNORED = (*BESIDE_BAD_ROWS, "fault")  # the former name of "error"
_YES_OR_NO = {
    "": None,
    "yes": True,
    "true": True,
    "1": True,
    "no": False,
    "false": False,
    "0": False,
}
# A workbook shows a day as this moment of it.
_MIDNIGHT = re.compile("T00:00(:00)?$")


class Row(Value):
    """One row that can be imported, of a taxpayer or about one."""

    line: int
    taxpayer: TaxpayerId

    @property
    def key(self) -> str:
        """What may be in the file once only, as people know it."""
        return str(self.taxpayer)

    @property
    def named(self) -> tuple[TaxpayerId, ...]:
        """The taxpayers that must be registered."""
        return (self.taxpayer,)

    @property
    def shown(self) -> tuple[str, ...]:
        """Its values for a preview, in the order of the columns."""
        _line, *names = self.__struct_fields__
        return tuple(cell_of(getattr(self, name)) for name in names)


AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True, slots=True, order=True)
class BadRow:
    """A row that cannot be imported, and why."""

    line: int
    fault: str
    code: str = "refused"
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"line {self.line}: {self.fault}"


@dataclass(frozen=True, slots=True)
class ParsedFile(Generic[AnyRow]):
    """All rows of a file, good and bad, each in the file's order."""

    rows: list[AnyRow] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a file. Those of an export that an import does not read are ignored."""

    parse: Callable[[CsvRow, Notation], Any]  # raises ServiceError or MalformedIdentifier
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """What a row can have, in the order of a preview."""
        return (*self.needed, *self.optional)


def read_file(
    file: BinaryIO, notation: Notation, max_rows: int, columns: Columns
) -> ParsedFile[Any]:
    """Every row; a second one with the same key is bad. Raises ServiceError if none can be read."""
    parsed: ParsedFile[Any] = ParsedFile()
    first_lines: dict[str, int] = {}
    lines = read_cells(file, columns.needed, columns.optional, (*IGNORED, *columns.ignored))
    _line, names = next(lines)
    for count, (line, cells) in enumerate(lines, start=1):
        if count > max_rows:
            raise ServiceError("The file has more than {most} rows. Split it.", most=max_rows)
        try:
            row = columns.parse(named_cells(line, cells, names), notation)
            first = first_lines.setdefault(row.key, row.line)
            if first != row.line:
                raise ServiceError(
                    "{taxpayer} is already in line {line}", taxpayer=row.key, line=first
                )
            parsed.rows.append(row)
        except MalformedIdentifier as fault:
            parsed.bad_rows.append(BadRow(line, rule_of(fault)))
        except ServiceError as fault:
            parsed.bad_rows.append(bad_row(line, fault))
    if not parsed.rows and not parsed.bad_rows:
        raise ServiceError("The file has no rows below its header.")
    return parsed


def bad_row(line: int, fault: ServiceError) -> BadRow:
    """The row with this error, which follows its line: without the full stop."""
    return BadRow(line, str(fault).rstrip("."), fault.code, fault.fields)


# --- Cells ------------------------------------------------------------------------------------


def cell_of(value: object) -> str:
    """A value of a row as a preview shows it; empty for None."""
    match value:
        case None:
            return ""
        case datetime():
            return format_moment(value)
        case tuple():
            return " ".join(value)
        case Evidence():
            return value.paper_form
    return str(value)


def yes_or_no(row: CsvRow, column: str) -> bool | None:
    """None if the cell is empty or missing. Raises ServiceError if it is neither."""
    given = row.cells.get(column, "").lower()
    if given not in _YES_OR_NO:
        raise ServiceError("active must be yes or no, not {given}", given=repr(given[:20]))
    return _YES_OR_NO[given]


def words(row: CsvRow, column: str) -> list[str]:
    """The words of the cell, separated by blanks, commas or semicolons."""
    return [word for word in re.split(r"[\s,;]+", row.cells.get(column, "")) if word]


def first_moment(row: CsvRow, column: str) -> datetime | None:
    """A day as its first moment, or a moment; None if the cell is empty or missing."""
    return _moment(row, column, start_of_day)


def last_moment(row: CsvRow, column: str) -> datetime | None:
    """A day as its last moment, or a moment; None if the cell is empty or missing."""
    moment = _moment(row, column, end_of_day)
    if moment is None:
        return None
    local = timezone.localtime(moment)
    # An export writes the last moment of a day to the second.
    is_end_of_day = (local.hour, local.minute, local.second) == (23, 59, 59)
    return end_of_day(local.date()) if is_end_of_day else moment


def _moment(row: CsvRow, column: str, of_day: Callable[..., datetime]) -> datetime | None:
    text = _MIDNIGHT.sub("", row.cells.get(column, ""))
    if not text:
        return None
    try:
        return parse_moment(text, of_day)
    except (ValueError, OverflowError):
        raise ServiceError(
            "{column} must be a date like 2027-12-31, not {given}",
            column=column,
            given=repr(text[:30]),
        ) from None
