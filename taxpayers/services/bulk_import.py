"""Taxpayers in bulk: all of a file or none of it (contract 6).

On SQLite every login waits while a transaction writes. So everything is compared and prepared
before it begins, and it only copies rows.
"""

from collections.abc import Callable
from datetime import datetime

from django.db import IntegrityError, connection
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.files.rows import BadRow, ParsedFile
from taxpayers.files.taxpayer_rows import MAX_ROWS, TaxpayerRow
from taxpayers.models import Taxpayer
from taxpayers.services.bulk_insert import insert_taxpayers
from taxpayers.services.history import Author, ChangeContext
from taxpayers.services.import_lock import one_import_at_a_time
from taxpayers.services.row_import import BadRowsError, ImportPreview, ImportResult
from taxpayers.validation import ServiceError, reason_of_import

_BATCH = 900  # SQLite takes no more than 999 parameters in one statement
# Logins wait for the transaction: 0.5 s of CPU time for so many rows.
_MAX_ROWS_ON_SQLITE = 100_000


def import_registry(
    *,
    parsed: ParsedFile[TaxpayerRow],
    source: str,
    by: Author,
    at: datetime,
    progress: Callable[[int], object] = int,
) -> ImportResult:
    """Register every taxpayer of the file `source` in one transaction; safe to repeat.

    Calls `progress` with the number of rows after each batch that was compared. Raises
    BadRowsError, with all bad rows, if a row is bad or contradicts a registered taxpayer, and
    ServiceError if another import is running, or if another one registers one of them at the same
    moment.
    """
    author = by.in_one_task()
    context = ChangeContext(actions.IMPORT_REGISTRY, author, at, reason_of_import(source))
    with one_import_at_a_time():
        new, contradictions = _compare_all(parsed.rows, progress)
        if bad_rows := sorted(parsed.bad_rows + contradictions):
            raise BadRowsError(bad_rows, len(parsed.rows) + len(parsed.bad_rows))
        try:
            insert_taxpayers((_taxpayer(row, at) for row in new), context)
        except IntegrityError:
            raise ServiceError(
                _(
                    "Another person registered a taxpayer of this file just now."
                    " Nothing has been imported. Start the import again."
                )
            ) from None
    return ImportResult(registered=len(new), unchanged=len(parsed.rows) - len(new))


def max_rows() -> int:
    """How many rows a file may have on this database."""
    return _MAX_ROWS_ON_SQLITE if connection.vendor == "sqlite" else MAX_ROWS


def preview_registry(*, parsed: ParsedFile[TaxpayerRow]) -> ImportPreview:
    """What `import_registry` would do with this file now; changes nothing."""
    new, contradictions = _compare_all(parsed.rows, int)
    unchanged = len(parsed.rows) - len(new) - len(contradictions)
    return ImportPreview(new, unchanged, sorted(parsed.bad_rows + contradictions))


def _compare_all(
    rows: list[TaxpayerRow], progress: Callable[[int], object]
) -> tuple[list[TaxpayerRow], list[BadRow]]:
    new: list[TaxpayerRow] = []
    contradictions: list[BadRow] = []
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        new_in_batch, contradictions_in_batch = _compare(batch)
        new += new_in_batch
        contradictions += contradictions_in_batch
        progress(len(batch))
    return new, contradictions


def _compare(batch: list[TaxpayerRow]) -> tuple[list[TaxpayerRow], list[BadRow]]:
    tins = {row.taxpayer.tin for row in batch}
    registered = {one.identifier: one for one in Taxpayer.objects.filter(tin__in=tins)}
    new, contradictions = [], []
    for row in batch:
        present = registered.get(row.taxpayer)
        if present is None:
            new.append(row)
        elif fault := _contradiction(row, present):
            contradictions.append(BadRow(row.line, fault, "already_registered"))
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


def _taxpayer(row: TaxpayerRow, at: datetime) -> Taxpayer:
    return Taxpayer(
        tin=row.taxpayer.tin,
        rob=row.taxpayer.rob,
        name=row.name,
        is_active=row.is_active is not False,
        created_at=at,
    )
