"""Taxpayers in bulk: all of a file or none of it (contract 6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from taxpayers.files.taxpayer_rows import BadRow, Entry, Reading
from taxpayers.models import Taxpayer
from taxpayers.services.history import Action, Author, ChangeContext, record_changes
from taxpayers.services.taxpayers import registered
from taxpayers.validation import ServiceError

_BATCH = 900  # SQLite takes no more than 999 parameters in one statement


@dataclass(frozen=True, slots=True)
class Imported:
    """How many taxpayers are new, and how many were registered so already."""

    registered: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What an import would do: whom it would register, how many it would leave as they are."""

    new: list[Entry]
    unchanged: int
    bad_rows: list[BadRow]


class BadRows(ServiceError):
    """Rows that cannot be taken, in the file's order; so none was."""

    def __init__(self, bad_rows: Sequence[BadRow], total: int) -> None:
        super().__init__(f"{len(bad_rows)} of {total} rows are bad. Nothing has been imported.")
        self.bad_rows = tuple(bad_rows)


def import_registry(
    *,
    reading: Reading,
    source: str,
    by: Author,
    at: datetime,
    progress: Callable[[int], object] = int,
) -> Imported:
    """Register every taxpayer of the file `source` in one transaction; safe to repeat.

    Calls `progress` with the number of rows after each batch. Raises BadRows, naming all of them,
    if a row is bad or contradicts a registered taxpayer, and ServiceError if somebody else
    registered one of them meanwhile.
    """
    deed = ChangeContext(Action.IMPORT_REGISTRY, by, at, reason=f"file {source}"[:500])
    bad_rows, count = list(reading.bad_rows), 0
    try:
        with transaction.atomic():
            for start in range(0, len(reading.entries), _BATCH):
                batch = reading.entries[start : start + _BATCH]
                new, contradictions = _compare(batch)
                bad_rows += contradictions
                if not bad_rows:
                    _register(new, deed)
                    count += len(new)
                progress(len(batch))
            if bad_rows:
                total = len(reading.entries) + len(reading.bad_rows)
                raise BadRows(sorted(bad_rows), total)
    except IntegrityError:
        raise ServiceError(
            _(
                "Somebody else registered a taxpayer of this file just now."
                " Nothing has been imported: start it again."
            )
        ) from None
    return Imported(registered=count, unchanged=len(reading.entries) - count)


def preview_registry(*, reading: Reading) -> Preview:
    """What `import_registry` would do with this file now; changes nothing."""
    new: list[Entry] = []
    bad_rows = list(reading.bad_rows)
    for start in range(0, len(reading.entries), _BATCH):
        new_in_batch, contradictions = _compare(reading.entries[start : start + _BATCH])
        new += new_in_batch
        bad_rows += contradictions
    contradicting = len(bad_rows) - len(reading.bad_rows)
    unchanged = len(reading.entries) - len(new) - contradicting
    return Preview(new, unchanged, sorted(bad_rows))


def _compare(batch: list[Entry]) -> tuple[list[Entry], list[BadRow]]:
    tins = {entry.taxpayer.tin for entry in batch}
    present = {row.identifier: row for row in Taxpayer.objects.filter(tin__in=tins)}
    new, contradictions = [], []
    for entry in batch:
        row = present.get(entry.taxpayer)
        if row is None:
            new.append(entry)
        elif row.name != entry.name:
            fault = f"{entry.taxpayer} is registered already, under the name {row.name}"
            contradictions.append(BadRow(entry.line, fault))
        elif entry.is_active not in (None, row.is_active):
            state = "active" if row.is_active else "not active"
            fault = f"{entry.taxpayer} is registered already, and is {state}"
            contradictions.append(BadRow(entry.line, fault))
    return new, contradictions


def _register(entries: list[Entry], deed: ChangeContext) -> None:
    rows = Taxpayer.objects.bulk_create(
        Taxpayer(
            tin=entry.taxpayer.tin,
            rob=entry.taxpayer.rob,
            name=entry.name,
            is_active=entry.is_active is not False,
            created_at=deed.at,
        )
        for entry in entries
    )
    record_changes(((row, registered(row)) for row in rows), deed)
