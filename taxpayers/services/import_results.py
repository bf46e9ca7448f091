"""What an import did, or would do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from taxpayers.files.rows import BadRow
from taxpayers.validation import ServiceError


@dataclass(frozen=True, slots=True)
class ImportResult:
    """How many records are new, and how many were registered before with the same values."""

    registered: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """What an import would do: which rows it would register, how many it would leave unchanged."""

    new: list[Any]
    unchanged: int
    bad_rows: list[BadRow]


class BadRowsError(ServiceError):
    """Rows that cannot be imported, in the file's order; so none was."""

    def __init__(self, bad_rows: Sequence[BadRow], total: int) -> None:
        super().__init__(f"{len(bad_rows)} of {total} rows are bad. Nothing has been imported.")
        self.bad_rows = tuple(bad_rows)
