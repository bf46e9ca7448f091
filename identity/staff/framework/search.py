"""Search that always uses an index: one short query for each condition."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import OperationalError, connection, transaction
from django.db.models import Model, Q, QuerySet
from psycopg.errors import QueryCanceled

from identity.staff.framework.pagination import CappedPaginator

_Row = TypeVar("_Row", bound=Model)

# The paginator shows no more rows; it asks for a more precise search instead.
MAX_FOUND = CappedPaginator.max_rows + 1


# The index finds every part of a name; who searches for parts that many names have would wait long.
SEARCH_SECONDS = 2.0


class TooGeneral(Exception):
    """The search takes too long: it needs another word."""


@contextmanager
def limited_search() -> Iterator[None]:
    """Around the statements of one search. Raises TooGeneral if one of them takes too long.

    PostgreSQL only: SQLite has the few rows of a trial.
    """
    if connection.vendor != "postgresql":
        yield
        return
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout TO {int(SEARCH_SECONDS * 1000)}")
            yield
            # Where this is within a transaction, which goes on.
            cursor.execute("SET LOCAL statement_timeout TO DEFAULT")
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooGeneral from None
        raise


def search_by_index(rows: "QuerySet[_Row]", conditions: Iterable[Q]) -> "QuerySet[_Row]":
    """The rows that match one of the conditions, at most MAX_FOUND for each.

    Each condition must be answered by one index. Together in one OR, none of them would use it.
    Raises TooGeneral.
    """
    keys: set[Any] = set()
    with limited_search():
        for condition in conditions:
            matching = rows.filter(condition).order_by()
            keys.update(matching.values_list("pk", flat=True)[:MAX_FOUND])
    return rows.filter(pk__in=keys)


def taxpayer_conditions(term: str, path: str = "") -> list[Q]:
    """Conditions that find a taxpayer by its TIN, `TIN:ROB`, its ROB number or parts of its name.

    `path` leads from the listed row to the taxpayer, for example `taxpayer__`.
    """
    by_name = Q(**{f"{path}name__has_words": term})
    if " " in term:
        return [by_name]
    tin, _, rob = term.upper().partition(":")
    if rob:
        return [Q(**{f"{path}tin": tin, f"{path}rob__startswith": rob})]
    # Both in one condition: PostgreSQL adds up what two indexes of one table found.
    by_number = Q(**{f"{path}tin__startswith": tin}) | Q(**{f"{path}rob__startswith": tin})
    return [by_number, by_name]
