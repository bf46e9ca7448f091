"""Intermediaries, permissions and system users in bulk: all of a file or none of it.

Rows are checked by the code that checks one record, without a lock. The transaction only stores
them, with one statement for each table: a login of the clients concerned waits for nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Model
from msgspec.structs import asdict

from taxpayers.files.row_kinds import PermissionRow
from taxpayers.files.rows import BadRow, ParsedFile, Row, bad_row
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Intermediary, Taxpayer
from taxpayers.services.history import ChangeContext
from taxpayers.services.named import NotRegistered, no_taxpayer, role_of
from taxpayers.services.new_records import NewRecord, save_all_new
from taxpayers.validation import ServiceError


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """What an import would do: which rows it would register, how many it would leave unchanged."""

    new: list[Any]
    unchanged: int
    bad_rows: list[BadRow]


Store = Callable[[ChangeContext], object]
# Which rows are new, and what stores them: it raises IntegrityError if others have done so by then.
Checked = tuple[ImportPreview, Store]

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

    def values_of(self, row: Row, at: datetime) -> dict[str, Any]:
        """What it says, with the records that it names. Raises ServiceError if one is not there."""
        values = asdict(row) | {"taxpayer": self.taxpayer(row.taxpayer)}
        del values["line"]
        if isinstance(row, PermissionRow):
            values["intermediary"] = self.intermediary(row.intermediary)
            # What is granted today was not in force yesterday.
            values["valid_from"] = max(row.valid_from or at, at)
        return values


def check_rows(
    model: type[Model],
    prepare: Callable[..., NewRecord],
    parsed: ParsedFile[Any],
    at: datetime,
    progress: Callable[[int], object],
) -> Checked:
    """Check each row by `prepare`, which takes its values and raises ServiceError."""
    newest: Any = model._default_manager.order_by("-pk").values_list("pk", flat=True).first()
    new, records, bad_rows, unchanged = [], [], list(parsed.bad_rows), 0
    named = NamedTaxpayers(parsed.rows)
    for row in parsed.rows:
        try:
            record = prepare(**named.values_of(row, at), at=at)
        except ServiceError as fault:
            bad_rows.append(bad_row(row.line, fault))
        else:
            if record.is_new:
                new.append(row)
                records.append(record)
            else:
                unchanged += 1
        progress(1)
    store = partial(_store, model, newest or 0, records)
    return ImportPreview(new, unchanged, sorted(bad_rows)), store


@transaction.atomic
def _store(
    model: type[Model], newest: int, records: Sequence[NewRecord], context: ChangeContext
) -> None:
    """Raises IntegrityError if others have registered one of these taxpayers since `newest`."""
    owners = sorted({record.row.taxpayer_id for record in records})
    for some in _batches(owners):
        list(Taxpayer.objects.select_for_update().filter(pk__in=some).order_by("pk"))
        if model._default_manager.filter(pk__gt=newest, taxpayer__in=some).exists():
            raise IntegrityError
    save_all_new(records, context)


def _batches(keys: list[_Key]) -> Iterator[list[_Key]]:
    for start in range(0, len(keys), _BATCH):
        yield keys[start : start + _BATCH]
