"""Taxpayers in bulk: all of a file or none of it (contract 6).

On SQLite every login waits while a transaction writes. So everything is compared and prepared
before it begins, and it only copies rows: first they are written to a temporary table, which no
other connection sees or waits for. Others wait a fifth of the time that `bulk_create` takes.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import Field, Model
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.files.rows import BadRow, ParsedFile
from taxpayers.files.taxpayer_rows import MAX_ROWS, TaxpayerRow
from taxpayers.models import Change, Taxpayer
from taxpayers.services.history import Author, ChangeContext, change_of
from taxpayers.services.import_lock import one_import_at_a_time
from taxpayers.services.row_import import BadRowsError, ImportPreview, ImportResult
from taxpayers.services.taxpayers import registration_fields
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


_TABLE = "prepared_taxpayers"


def insert_taxpayers(rows: Iterable[Taxpayer], context: ChangeContext) -> None:
    """Insert these rows and their history, or nothing. Their ids are not set.

    Raises IntegrityError if one is registered.
    """
    with connection.cursor() as cursor, _prepared(cursor, rows, context), transaction.atomic():
        cursor.execute(_copy_taxpayers())
        cursor.execute(_copy_changes())


@contextlib.contextmanager
def _prepared(cursor: Any, rows: Iterable[Taxpayer], context: ChangeContext) -> Iterator[None]:
    """Each row of the temporary table has the values of a taxpayer and of its change."""
    fields = [*_taxpayer_fields(), *_change_fields()]
    columns = ", ".join(f"{_name(field)} {field.db_type(connection)}" for field in fields)
    is_sqlite = connection.vendor == "sqlite"
    cursor.execute(f"DROP TABLE IF EXISTS {_TABLE}")
    cursor.execute(
        f"CREATE TEMPORARY TABLE {_TABLE} ({columns}) {'' if is_sqlite else 'ON COMMIT DROP'}"
    )
    try:
        values = ", ".join(["%s"] * len(fields))
        cursor.executemany(f"INSERT INTO {_TABLE} VALUES ({values})", _values(rows, context))
        yield
    finally:
        if is_sqlite:
            cursor.execute(f"DROP TABLE {_TABLE}")


def _values(rows: Iterable[Taxpayer], context: ChangeContext) -> Iterator[tuple[Any, ...]]:
    of_taxpayer, of_change = _Stored(_taxpayer_fields()), _Stored(_change_fields())
    for row in rows:
        change = change_of(row, context, before={}, after=registration_fields(row))
        yield (*of_taxpayer.values_of(row), *of_change.values_of(change))


class _Stored:
    """Values as the database stores them; most are those of the row before, and not made anew."""

    def __init__(self, fields: "Sequence[Field[Any, Any]]") -> None:
        self._columns = [(field.attname, field.get_db_prep_save) for field in fields]
        self._before: list[tuple[Any, Any]] = [(object(), None)] * len(fields)

    def values_of(self, row: Model) -> Iterator[Any]:
        for place, (name, prepare) in enumerate(self._columns):
            value = getattr(row, name)
            if self._before[place][0] != value:
                self._before[place] = value, prepare(value, connection)
            yield self._before[place][1]


def _copy_taxpayers() -> str:
    columns, values = _lists(_taxpayer_fields())
    return f"INSERT INTO taxpayers ({columns}) SELECT {values} FROM {_TABLE}"


def _copy_changes() -> str:
    """The database has given each taxpayer its id; it is found by the unique key."""
    tin, rob = (_name(Taxpayer._meta.get_field(name)) for name in ("tin", "rob"))
    columns, values = _lists(_change_fields())
    return f"""INSERT INTO changes (object_id, {columns})
SELECT CAST(taxpayers.id AS varchar(64)), {values} FROM {_TABLE}
JOIN taxpayers ON taxpayers.tin = {tin} AND taxpayers.rob = {rob}"""


def _lists(fields: "Sequence[Field[Any, Any]]") -> tuple[str, str]:
    columns = ", ".join(connection.ops.quote_name(field.attname) for field in fields)
    return columns, ", ".join(_name(field) for field in fields)


def _name(field: Any) -> str:
    return f"{field.model._meta.model_name}_{field.attname}"


def _taxpayer_fields() -> "list[Field[Any, Any]]":
    return [field for field in Taxpayer._meta.concrete_fields if not field.primary_key]


def _change_fields() -> "list[Field[Any, Any]]":
    return [
        field for field in Change._meta.concrete_fields if field.name not in ("id", "object_id")
    ]
