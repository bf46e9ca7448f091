"""Taxpayers in bulk: all of a file or none of it (contract 6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from taxpayers.files.taxpayer_rows import BadRow, ParsedFile, TaxpayerRow
from taxpayers.models import Taxpayer
from taxpayers.services.history import Action, Author, ChangeContext, record_changes
from taxpayers.services.taxpayers import registration_fields
from taxpayers.validation import ServiceError

_BATCH = 900  # SQLite takes no more than 999 parameters in one statement


@dataclass(frozen=True, slots=True)
class ImportResult:
    """How many taxpayers are new, and how many were registered before with the same values."""

    registered: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """What an import would do: whom it would register, how many it would leave unchanged."""

    new: list[TaxpayerRow]
    unchanged: int
    bad_rows: list[BadRow]


class BadRowsError(ServiceError):
    """Rows that cannot be imported, in the file's order; so none was."""

    def __init__(self, bad_rows: Sequence[BadRow], total: int) -> None:
        super().__init__(f"{len(bad_rows)} of {total} rows are bad. Nothing has been imported.")
        self.bad_rows = tuple(bad_rows)


def import_registry(
    *,
    parsed: ParsedFile,
    source: str,
    by: Author,
    at: datetime,
    progress: Callable[[int], object] = int,
) -> ImportResult:
    """Register every taxpayer of the file `source` in one transaction; safe to repeat.

    Calls `progress` with the number of rows after each batch. Raises BadRowsError, with all bad
    rows, if a row is bad or contradicts a registered taxpayer, and ServiceError if somebody else
    registers one of them at the same moment.
    """
    context = ChangeContext(Action.IMPORT_REGISTRY, by, at, reason=f"file {source}"[:500])
    bad_rows, count = list(parsed.bad_rows), 0
    try:
        with transaction.atomic():
            for start in range(0, len(parsed.rows), _BATCH):
                batch = parsed.rows[start : start + _BATCH]
                new, contradictions = _compare(batch)
                bad_rows += contradictions
                if not bad_rows:
                    _register(new, context)
                    count += len(new)
                progress(len(batch))
            if bad_rows:
                raise BadRowsError(sorted(bad_rows), len(parsed.rows) + len(parsed.bad_rows))
    except IntegrityError:
        raise ServiceError(
            _(
                "Somebody else registered a taxpayer of this file just now."
                " Nothing has been imported. Start the import again."
            )
        ) from None
    return ImportResult(registered=count, unchanged=len(parsed.rows) - count)


def preview_registry(*, parsed: ParsedFile) -> ImportPreview:
    """What `import_registry` would do with this file now; changes nothing."""
    new: list[TaxpayerRow] = []
    contradictions: list[BadRow] = []
    for start in range(0, len(parsed.rows), _BATCH):
        new_in_batch, contradictions_in_batch = _compare(parsed.rows[start : start + _BATCH])
        new += new_in_batch
        contradictions += contradictions_in_batch
    unchanged = len(parsed.rows) - len(new) - len(contradictions)
    return ImportPreview(new, unchanged, sorted(parsed.bad_rows + contradictions))


def _compare(batch: list[TaxpayerRow]) -> tuple[list[TaxpayerRow], list[BadRow]]:
    tins = {row.taxpayer.tin for row in batch}
    registered = {one.identifier: one for one in Taxpayer.objects.filter(tin__in=tins)}
    new, contradictions = [], []
    for row in batch:
        present = registered.get(row.taxpayer)
        if present is None:
            new.append(row)
        elif fault := _contradiction(row, present):
            contradictions.append(BadRow(row.line, fault))
    return new, contradictions


def _contradiction(row: TaxpayerRow, present: Taxpayer) -> str:
    if row.name != present.name:
        fault = _("{taxpayer} is already registered under the name {name}")
    elif row.is_active in (None, present.is_active):
        return ""
    elif present.is_active:
        fault = _("{taxpayer} is already registered and is active")
    else:
        fault = _("{taxpayer} is already registered and is not active")
    return fault.format(taxpayer=row.taxpayer, name=present.name)


def _register(new: list[TaxpayerRow], context: ChangeContext) -> None:
    taxpayers = Taxpayer.objects.bulk_create(
        Taxpayer(
            tin=row.taxpayer.tin,
            rob=row.taxpayer.rob,
            name=row.name,
            is_active=row.is_active is not False,
            created_at=context.at,
        )
        for row in new
    )
    record_changes(((one, registration_fields(one)) for one in taxpayers), context)
