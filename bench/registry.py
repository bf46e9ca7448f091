"""Fills a migrated, empty database with the clients of a `Population`.

It is a registry in daily use: every client was registered a month ago and logged in an hour ago.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg
from jwt.algorithms import ECAlgorithm
from psycopg.sql import SQL, Identifier, Literal

from bench.clients import (
    API_ID,
    API_SECRET,
    Population,
    Role,
    client_id,
    client_secret,
    kid,
    private_key,
    tin,
)
from taxpayers.client_keys import PRIVATE_KEY_JWT, key_name, read_client_keys
from taxpayers.credentials import hash_secret, hint_of

_CHUNK = 25_000
_NOW = datetime.now(UTC).replace(microsecond=0)
_CREATED, _EXPIRES = _NOW - timedelta(days=30), _NOW + timedelta(days=365)
_LAST_LOGIN = _NOW - timedelta(hours=1)
_PERMISSION_CODES = ("documents:submit", "documents:view")

_COLUMNS = {
    "taxpayers": ("id", "tin", "rob", "name", "is_active", "created_at"),
    "intermediaries": ("id", "taxpayer_id", "is_active", "created_at"),
    "system_users": (
        *("id", "taxpayer_id", "name", "client_id", "scopes", "logins_per_minute"),
        *("created", "updated", "blocked_at", "blocked_by", "blocked_reason"),
        *("last_secret_ends_at", "token_endpoint_auth_method"),
    ),
    "credentials": (
        "id",
        "system_user_id",
        "slot",
        "lookup",
        "hint",
        "created_at",
        "expires_at",
        "public_jwk",
    ),
    "client_usage": ("system_user_id", "window_started_at", "used", "secrets_used"),
    "granted_permissions": ("id", "taxpayer_id", "intermediary_id", "valid_from", "created_at"),
    "granted_permission_codes": ("grantedpermission_id", "permissioncode_id"),
}

# The protected API that asks about tokens.
_ADD_API = """
WITH api AS (
    INSERT INTO protected_apis (client_id, name, audience, is_active, created_at)
    VALUES (%s, 'Invoicing', 'InvoicingAPI', true, %s) RETURNING id
)
INSERT INTO protected_api_secrets (protected_api_id, lookup, hint, created_at, expires_at)
SELECT id, %s, %s, %s, %s FROM api"""

Row = tuple[Any, ...]


def _rows(population: Population, role: Role, number: int) -> Iterator[tuple[str, Row]]:
    """Everything that is registered for one client: tables and rows."""
    limit, has_key = population.logins_per_minute(role), role is Role.PRIVATE_KEY
    blocked = (_NOW, "staff", "fraud") if role is Role.BLOCKED else (None, "", "")
    user = (number, number, f"ERP {number}", client_id(number), "InvoicingAPI", limit)
    method = PRIVATE_KEY_JWT if has_key else ""
    lookup, hint, jwk = _key(number) if has_key else _secret(number)
    used = json.dumps({number: _LAST_LOGIN.isoformat()})
    yield "taxpayers", (number, tin(number), "", f"Taxpayer {number}", True, _CREATED)
    yield "system_users", (*user, _CREATED, _CREATED, *blocked, _EXPIRES, method)
    yield "credentials", (number, number, 1, lookup, hint, _CREATED, _EXPIRES, jwk)
    yield "client_usage", (number, _LAST_LOGIN, 1, used)
    if role is Role.INTERMEDIARY:
        yield "intermediaries", (number, number, True, _CREATED)
    if role is Role.TAXPAYER:
        intermediary = population.intermediary_of(number)
        yield "granted_permissions", (number, number, intermediary, _CREATED, _CREATED)
        for code in _PERMISSION_CODES:
            yield "granted_permission_codes", (number, code)


def _secret(number: int) -> tuple[str, str, str]:
    """What is stored of it: a name to find it by, a hint, and no key."""
    secret = client_secret(number)
    return hash_secret(secret), hint_of(secret), ""


def _api() -> Row:
    lookup, hint = hash_secret(API_SECRET), hint_of(API_SECRET)
    return (API_ID, _CREATED, lookup, hint, _CREATED, _EXPIRES)


def _key(number: int) -> tuple[str, str, str]:
    """The same of a key: its name, a hint, and the public key."""
    public_jwk = ECAlgorithm.to_jwk(private_key(number).public_key(), as_dict=True)
    (key,) = read_client_keys(json.dumps(public_jwk | {"kid": kid(number)}))
    return key_name(key.kid), hint_of(key.kid), key.jwk


def _chunks(population: Population) -> list[tuple[Population, Role, range]]:
    return [
        (population, role, population.numbers(role)[start : start + _CHUNK])
        for role in Role
        for start in range(0, len(population.numbers(role)), _CHUNK)
    ]


def _tables(population: Population, role: Role, numbers: range) -> dict[str, list[Row]]:
    tables = defaultdict(list)
    for number in numbers:
        for table, row in _rows(population, role, number):
            tables[table].append(row)
    return tables


def fill_postgres(url: str, population: Population) -> None:
    """Copies from several processes; then sequences, statistics and pages as after years."""
    # Forked processes would share what this one has open; these start empty.
    with get_context("spawn").Pool() as pool:
        pool.starmap(_copy, [(url, *chunk) for chunk in _chunks(population)], chunksize=1)
    with psycopg.connect(url, autocommit=True) as connection:
        for table, columns in _COLUMNS.items():
            if columns[0] == "id":
                connection.execute(
                    SQL("SELECT setval(pg_get_serial_sequence({}, 'id'), max(id)) FROM {}").format(
                        Literal(table), Identifier(table)
                    )
                )
        connection.execute(_ADD_API, _api())
        connection.execute("VACUUM (FREEZE, ANALYZE)")
        connection.execute("CHECKPOINT")


def _copy(url: str, *chunk: Any) -> None:
    with psycopg.connect(url) as connection:
        # What is copied fits together by construction: no look-up of each foreign key, and no
        # trigger that adds the rows of clients or renews an epoch.
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET synchronous_commit = off")
        for table, rows in _tables(*chunk).items():
            columns = SQL(", ").join(map(Identifier, _COLUMNS[table]))
            copy_in = SQL("COPY {} ({}) FROM STDIN").format(Identifier(table), columns)
            with connection.cursor() as cursor, cursor.copy(copy_in) as copy:
                for row in rows:
                    copy.write_row(row)


def fill_sqlite(file: Path, population: Population) -> None:
    """The same in an SQLite file."""
    connection = sqlite3.connect(file)
    # A file that is filled again after a crash needs no journal.
    connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
    # Triggers would add the rows of clients, and renew their epochs with every further row.
    triggers = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for chunk in _chunks(population):
        for table, rows in _tables(*chunk).items():
            columns = _COLUMNS[table]
            places = ", ".join("?" for _ in columns)
            insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608
            connection.executemany(insert, map(_as_django_stores, rows))
    for _, definition in triggers:
        connection.execute(definition)
    connection.commit()
    connection.execute("ANALYZE")
    connection.execute("PRAGMA journal_mode = WAL")  # as the service has it
    connection.close()


def _as_django_stores(row: Row) -> Row:
    # Moments are text in SQLite, in UTC and without an offset.
    return tuple(
        str(value.replace(tzinfo=None)) if isinstance(value, datetime) else value for value in row
    )
