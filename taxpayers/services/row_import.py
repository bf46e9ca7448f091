"""Intermediaries, permissions and system users in bulk: all of a file or none of it.

Rows are checked by the code that checks one record, without a lock. The transaction only stores
them, with one statement for each table: a login of the clients concerned waits for nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Model
from django.utils.translation import gettext as _

from taxpayers.actions import Action
from taxpayers.files.rows import AnyRow, BadRow, ParsedFile, bad_row
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Intermediary, Taxpayer
from taxpayers.services.history import Author, ChangeContext
from taxpayers.services.import_lock import one_import_at_a_time
from taxpayers.services.named import NotRegistered, no_taxpayer, role_of
from taxpayers.services.new_records import NewRecord, save_all_new
from taxpayers.validation import ServiceError, reason_of_import


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


MAX_ROWS = 2_000
_Key = TypeVar("_Key", int, str)
_BATCH = 900  # SQLite takes no more than 999 parameters in one statement


class NamedTaxpayers:
    """The taxpayers that the rows of a file name, read in a few queries."""

    def __init__(self, rows: Iterable[Any]) -> None:
        tins = sorted({identifier.tin for row in rows for identifier in row.named})
        self._found = {
            taxpayer.identifier: taxpayer
            for some in _batches(tins)
            for taxpayer in Taxpayer.objects.filter(tin__in=some).select_related("intermediary")
        }

    def taxpayer(self, identifier: TaxpayerId, field: str = "taxpayer") -> Taxpayer:
        """Raises ServiceError if it is not registered."""
        taxpayer = self._found.get(identifier)
        if taxpayer is None:
            raise NotRegistered(no_taxpayer(identifier), field)
        return taxpayer

    def intermediary(self, identifier: TaxpayerId) -> Intermediary:
        """Raises ServiceError if there is no such taxpayer or it is not an intermediary."""
        return role_of(self.taxpayer(identifier, "intermediary"))


# Checks one row, without storing anything. Raises ServiceError.
Prepare = Callable[[AnyRow, NamedTaxpayers, datetime], NewRecord]


def max_rows() -> int:
    """How many rows a file may have: each takes a few queries to check."""
    return MAX_ROWS


def import_rows(
    model: type[Model],
    action: Action,
    prepare: Prepare[AnyRow],
    *,
    parsed: ParsedFile[AnyRow],
    source: str,
    by: Author,
    at: datetime,
    progress: Callable[[int], object] = int,
) -> ImportResult:
    """Register every row of the file `source` in one transaction; safe to repeat.

    Calls `progress` with 1 after each row. Raises BadRowsError, with all bad rows, if one is bad,
    and ServiceError if another import is running, or if another one registers one of them at the
    same moment.
    """
    context = ChangeContext(action, by.in_one_task(), at, reason_of_import(source))
    with one_import_at_a_time():
        newest = _newest_key(model)
        preview, records = _check_all(prepare, parsed, at, progress)
        if preview.bad_rows:
            raise BadRowsError(preview.bad_rows, len(parsed.rows) + len(parsed.bad_rows))
        try:
            _store(model, newest, records, context)
        except IntegrityError:
            raise _somebody_else() from None
    return ImportResult(registered=len(records), unchanged=preview.unchanged)


def preview_rows(
    prepare: Prepare[AnyRow], *, parsed: ParsedFile[AnyRow], at: datetime
) -> ImportPreview:
    """What `import_rows` would do with this file now; changes nothing."""
    preview, _records = _check_all(prepare, parsed, at, int)
    return preview


def _check_all(
    prepare: Prepare[AnyRow],
    parsed: ParsedFile[AnyRow],
    at: datetime,
    progress: Callable[[int], object],
) -> tuple[ImportPreview, list[NewRecord]]:
    preview = ImportPreview([], 0, list(parsed.bad_rows))
    records, unchanged = [], 0
    named = NamedTaxpayers(parsed.rows)
    for row in parsed.rows:
        try:
            record = prepare(row, named, at)
        except ServiceError as fault:
            preview.bad_rows.append(bad_row(row.line, fault))
        else:
            if record.is_new:
                preview.new.append(row)
                records.append(record)
            else:
                unchanged += 1
        progress(1)
    bad_rows = sorted(preview.bad_rows)
    return replace(preview, unchanged=unchanged, bad_rows=bad_rows), records


@transaction.atomic
def _store(
    model: type[Model], newest: int, records: Sequence[NewRecord], context: ChangeContext
) -> None:
    """Raises ServiceError if others have registered a record of these taxpayers since `newest`."""
    owners = sorted({record.row.taxpayer_id for record in records})
    for some in _batches(owners):
        list(Taxpayer.objects.select_for_update().filter(pk__in=some).order_by("pk"))
        if model._default_manager.filter(pk__gt=newest, taxpayer__in=some).exists():
            raise _somebody_else()
    save_all_new(records, context)


def _batches(keys: list[_Key]) -> Iterator[list[_Key]]:
    for start in range(0, len(keys), _BATCH):
        yield keys[start : start + _BATCH]


def _newest_key(model: type[Model]) -> int:
    keys: Any = model._default_manager.order_by("-pk").values_list("pk", flat=True)
    return keys.first() or 0


def _somebody_else() -> ServiceError:
    return ServiceError(
        _(
            "Another person registered a record of this file just now."
            " Nothing has been imported. Start the import again."
        )
    )
