"""Taxpayers in bulk: all of a file or none of it (contract 6).

On SQLite every login waits while a transaction writes. So everything is compared and prepared
before it begins, and it only copies rows: first they are written to a temporary table, which no
other connection sees or waits for. Others wait a fifth of the time that `bulk_create` takes.
"""

import contextlib
import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext as _

from taxpayers.files.row_kinds import MAX_TAXPAYERS, TaxpayerRow
from taxpayers.files.rows import BadRow, ParsedFile
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, Taxpayer
from taxpayers.services.history import ChangeContext, change_of, label_of
from taxpayers.services.row_import import Checked, ImportPreview
from taxpayers.services.taxpayers import registration_fields

_BATCH = 5_000
# What a file says of a taxpayer, and what differs from row to row in the history.
_GIVEN = ("tin", "rob", "name", "is_active")
_OF_CHANGE = ("object_id", "label", "after")
_TABLE = "prepared_taxpayers"
_EACH = {
    "postgresql": "SELECT json_array_elements_text(%s)",
    "sqlite": "SELECT value FROM json_each(%s)",
}
# Logins wait for the transaction: 0.5 s of CPU time for so many rows.
_MAX_ROWS_ON_SQLITE = 100_000


def max_rows() -> int:
    """How many rows a file may have on this database."""
    return _MAX_ROWS_ON_SQLITE if connection.vendor == "sqlite" else MAX_TAXPAYERS


def check_taxpayers(
    parsed: ParsedFile[TaxpayerRow], _at: datetime, progress: Callable[[int], object]
) -> Checked:
    """Compare the rows with the registered taxpayers, some thousands at once."""
    new: list[TaxpayerRow] = []
    contradictions: list[BadRow] = []
    for start in range(0, len(parsed.rows), _BATCH):
        batch = parsed.rows[start : start + _BATCH]
        new_in_batch, contradictions_in_batch = _compare(batch)
        new += new_in_batch
        contradictions += contradictions_in_batch
        progress(len(batch))
    unchanged = len(parsed.rows) - len(new) - len(contradictions)
    preview = ImportPreview(new, unchanged, sorted(parsed.bad_rows + contradictions))
    return preview, partial(insert_taxpayers, new)


def _compare(batch: list[TaxpayerRow]) -> tuple[list[TaxpayerRow], list[BadRow]]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(_GIVEN)} FROM taxpayers WHERE tin IN ({_EACH[connection.vendor]})",
            [json.dumps([row.taxpayer.tin for row in batch])],
        )
        registered = {TaxpayerId(tin, rob): given for tin, rob, *given in cursor.fetchall()}
    new, contradictions = [], []
    for row in batch:
        present = registered.get(row.taxpayer)
        if present is None:
            new.append(row)
        elif fault := _contradiction(row, *present):
            contradictions.append(BadRow(row.line, fault, "already_registered"))
    return new, contradictions


def _contradiction(row: TaxpayerRow, name: str, is_active: bool) -> str:
    if row.name != name:
        fault = _("{taxpayer} is already registered under the name {name}")
    elif row.is_active in (None, is_active):
        return ""
    elif is_active:
        fault = _("{taxpayer} is already registered and is active")
    else:
        fault = _("{taxpayer} is already registered and is not active")
    return fault.format(taxpayer=row.taxpayer, name=name)


def insert_taxpayers(rows: list[TaxpayerRow], context: ChangeContext) -> None:
    """Insert these rows and their history, or nothing. Raises IntegrityError if one is there."""
    same, given = _same_in_each_change(context), ", ".join(_GIVEN)
    columns = ", ".join(map(connection.ops.quote_name, (*same, *_OF_CHANGE)))
    insert_rows = f"""INSERT INTO taxpayers ({given}, created_at)
SELECT {given}, %s FROM {_TABLE}"""
    # The database has given each taxpayer its id; it is found by the unique key.
    insert_changes = f"""INSERT INTO changes ({columns})
SELECT {", ".join(["%s"] * len(same))}, CAST(registered.id AS varchar(64)), label, after
FROM {_TABLE} JOIN {{}} AS registered USING (tin, rob) ORDER BY registered.id"""
    with connection.cursor() as cursor, _prepared(cursor, rows), transaction.atomic():
        if connection.vendor == "sqlite":
            cursor.execute(insert_rows, [same["at"]])
            cursor.execute(insert_changes.format("taxpayers"), [*same.values()])
        else:  # does not look for them among all that there are
            cursor.execute(
                f"WITH new_rows AS ({insert_rows} RETURNING id, tin, rob)"
                f" {insert_changes.format('new_rows')}",
                [same["at"], *same.values()],
            )


def _same_in_each_change(context: ChangeContext) -> dict[str, Any]:
    """Column and value, as the database stores it, of what all changes have in common."""
    change = change_of(Taxpayer(), context, before={}, after={})
    return {
        field.attname: field.get_db_prep_save(getattr(change, field.attname), connection)
        for field in Change._meta.concrete_fields
        if field.name not in ("id", *_OF_CHANGE)
    }


@contextlib.contextmanager
def _prepared(cursor: Any, rows: list[TaxpayerRow]) -> Iterator[None]:
    """The temporary table has these rows, each with what the history says of it."""
    is_sqlite = connection.vendor == "sqlite"
    cursor.execute(f"DROP TABLE IF EXISTS {_TABLE}")
    cursor.execute(
        f"CREATE TEMPORARY TABLE {_TABLE} {'' if is_sqlite else 'ON COMMIT DROP'} AS"
        f" SELECT {', '.join(_GIVEN)}, label, after FROM taxpayers, changes LIMIT 0"
    )
    try:
        if is_sqlite:
            cursor.executemany(
                f"INSERT INTO {_TABLE} VALUES (%s, %s, %s, %s, %s, %s)", _values(rows)
            )
        else:
            with cursor.copy(f"COPY {_TABLE} FROM STDIN (FORMAT csv)") as copy:
                for start in range(0, len(rows), _BATCH):  # each write is sent at once
                    text = io.StringIO()
                    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
                    writer.writerows(_values(rows[start : start + _BATCH]))
                    copy.write(text.getvalue())
        yield
    finally:
        if is_sqlite:
            cursor.execute(f"DROP TABLE {_TABLE}")


def _values(rows: list[TaxpayerRow]) -> Iterator[tuple[Any, ...]]:
    """One object for all: to make one of a model costs more than all the rest of a row."""
    one = Taxpayer()
    for row in rows:
        one.tin, one.rob, one.name = row.taxpayer.tin, row.taxpayer.rob, row.name
        one.is_active = row.is_active is not False
        after = json.dumps(registration_fields(one))
        yield one.tin, one.rob, one.name, one.is_active, label_of(one), after
