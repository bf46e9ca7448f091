"""Fills a PostgreSQL with the clients of a `Population`, by COPY from several processes.

It is a registry in daily use: every client was registered a month ago and logged in an hour ago.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from bench.clients import Population, Role, client_id, client_secret, tin
from taxpayers.credentials import hash_secret, hint_of

_CHUNK = 25_000
CODES = ("documents:submit", "documents:view")
_NOW = datetime.now(UTC).replace(microsecond=0)
_LAST_LOGIN = _NOW - timedelta(hours=1)
SINCE, _UNTIL = _NOW - timedelta(days=30), _NOW + timedelta(days=365)

Row = tuple[Any, ...]
Rows = Callable[[Population, Role, range], Iterator[Row]]


def fill(url: str, population: Population) -> None:
    """The registry of a country of this size, into the migrated, empty database at `url`."""
    work = [
        (url, population, role, range(start, min(start + _CHUNK, population.count(role))))
        for role in Role
        for start in range(0, population.count(role), _CHUNK)
    ]
    # Forked processes would share what this one has open; these start empty.
    with get_context("spawn").Pool() as pool:
        pool.starmap(_copy, work, chunksize=1)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO intermediaries (id, taxpayer_id, is_active, created_at)"
            " SELECT row_number() OVER (ORDER BY id), id, true, created_at"
            " FROM taxpayers WHERE tin LIKE 'I%'"
        )
        _permit(connection, population)
        _after(connection)


def _copy(url: str, population: Population, role: Role, numbers: range) -> None:
    with psycopg.connect(url) as connection:
        # What is copied fits together by construction: no look-up of each foreign key.
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET synchronous_commit = off")
        for table, (columns, rows) in TABLES.items():
            names = SQL(", ").join(Identifier(column) for column in columns)
            copy_in = SQL("COPY {} ({}) FROM STDIN").format(Identifier(table), names)
            with connection.cursor() as cursor, cursor.copy(copy_in) as copy:
                for row in rows(population, role, numbers):
                    copy.write_row(row)


def _taxpayers(population: Population, role: Role, numbers: range) -> Iterator[Row]:
    first = population.first_id(role)
    for number in numbers:
        yield (first + number, tin(role, number), "", f"Taxpayer {number}", True, SINCE)


def _system_users(population: Population, role: Role, numbers: range) -> Iterator[Row]:
    first = population.first_id(role)
    limit = population.logins_per_minute(role)
    blocked = (_NOW, "staff", "fraud") if role is Role.BLOCKED else (None, "", "")
    for number in numbers:
        id_ = first + number
        yield (
            *(id_, id_, f"ERP {number}", client_id(role, number)),
            *("InvoicingAPI", limit, SINCE, SINCE, *blocked),
        )


def _client_secrets(population: Population, role: Role, numbers: range) -> Iterator[Row]:
    first = population.first_id(role)
    for number in numbers:
        id_, secret = first + number, client_secret(role, number)
        yield (id_, id_, 1, hash_secret(secret), hint_of(secret), SINCE, _UNTIL)


def _usage(population: Population, role: Role, numbers: range) -> Iterator[Row]:
    first = population.first_id(role)
    for number in numbers:
        id_ = first + number
        yield (id_, _LAST_LOGIN, 1, json.dumps({id_: _LAST_LOGIN.isoformat()}))


TABLES: dict[str, tuple[tuple[str, ...], Rows]] = {
    "taxpayers": (("id", "tin", "rob", "name", "is_active", "created_at"), _taxpayers),
    "system_users": (
        (
            *("id", "taxpayer_id", "name", "client_id", "scopes", "logins_per_minute"),
            *("created", "updated", "blocked_at", "blocked_by", "blocked_reason"),
        ),
        _system_users,
    ),
    "client_secrets": (
        ("id", "system_user_id", "slot", "hashed", "hint", "created_at", "expires_at"),
        _client_secrets,
    ),
    "client_usage": (("system_user_id", "window_started_at", "used", "secrets_used"), _usage),
}


_WITH_SEQUENCE = [table for table, (columns, _) in TABLES.items() if columns[0] == "id"]


def _permit(connection: psycopg.Connection, population: Population) -> None:
    """Each taxpayer permits one intermediary to act for it, two codes."""
    connection.execute("SET session_replication_role = replica")
    connection.execute(
        "INSERT INTO granted_permissions (id, taxpayer_id, intermediary_id, valid_from, created_at)"
        " SELECT n + 1, n + %s, n %% %s + 1, %s, %s FROM generate_series(0, %s) AS n",
        [
            *(population.first_id(Role.TAXPAYER), population.count(Role.INTERMEDIARY)),
            *(SINCE, SINCE, population.taxpayers - 1),
        ],
    )
    connection.execute(
        "INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)"
        " SELECT id, code FROM granted_permissions, unnest(%s::varchar[]) AS code",
        [list(CODES)],
    )


def _after(connection: psycopg.Connection) -> None:
    """What a registry that grew over years has: sequences, statistics, settled pages."""
    for table in (*_WITH_SEQUENCE, "intermediaries", "granted_permissions"):
        connection.execute(
            SQL("SELECT setval(pg_get_serial_sequence({}, 'id'), max(id)) FROM {}").format(
                Literal(table), Identifier(table)
            )
        )
    connection.execute("VACUUM (FREEZE, ANALYZE)")
    connection.execute("CHECKPOINT")
