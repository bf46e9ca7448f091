"""Fills an SQLite file with the clients of a `Population`."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.clients import Population, Role
from bench.registry import CODES, SINCE, TABLES


def fill(file: Path, population: Population) -> None:
    """The registry of a country of this size, into the migrated, empty database `file`."""
    connection = sqlite3.connect(file)
    # A file that is filled anew after a crash needs no journal.
    connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
    for table, (columns, rows) in TABLES.items():
        statement = _insert(table, columns)
        for role in Role:
            numbers = range(population.count(role))
            connection.executemany(statement, map(_adapted, rows(population, role, numbers)))
    intermediaries = range(population.count(Role.INTERMEDIARY))
    first = population.first_id(Role.INTERMEDIARY)
    connection.executemany(
        _insert("intermediaries", ("id", "taxpayer_id", "is_active", "created_at")),
        (_adapted((number + 1, first + number, True, SINCE)) for number in intermediaries),
    )
    connection.executemany(
        _insert(
            "granted_permissions",
            ("id", "taxpayer_id", "intermediary_id", "valid_from", "created_at"),
        ),
        map(_adapted, _permissions(population)),
    )
    connection.executemany(
        _insert("granted_permission_codes", ("grantedpermission_id", "permissioncode_id")),
        ((number + 1, code) for number in range(population.taxpayers) for code in CODES),
    )
    connection.commit()
    connection.execute("ANALYZE")
    connection.execute("PRAGMA journal_mode = WAL")  # as the service keeps it
    connection.close()


def _permissions(population: Population) -> Iterator[tuple[Any, ...]]:
    first = population.first_id(Role.TAXPAYER)
    for number in range(population.taxpayers):
        intermediary = population.intermediary_of(number) + 1
        yield (number + 1, first + number, intermediary, SINCE, SINCE)


def _insert(table: str, columns: tuple[str, ...]) -> str:
    values = ", ".join("?" for _ in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608 - constants


def _adapted(row: tuple[Any, ...]) -> tuple[Any, ...]:
    # Django keeps moments in SQLite as text, in UTC and without an offset.
    return tuple(
        str(value.replace(tzinfo=None)) if isinstance(value, datetime) else value for value in row
    )
