"""What a login asks of the database, for one login at a time on Django's connection.

In every store the event and what it counts become durable together or not at all: in one statement
on PostgreSQL, in one transaction on SQLite. `tokens.store.lanes` does it for many at once.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction

from taxpayers.facts.query import load_facts
from taxpayers.facts.values import FactsQuery, Reading
from taxpayers.sql import fetch, fetch_with_reconnect
from tokens.calls import Call, TokenQuery
from tokens.store import postgresql, sqlite

Result = TypeVar("Result")

LOCK_CLIENT = """
SELECT statement_timestamp() FROM client_usage
WHERE system_user_id = (SELECT id FROM system_users WHERE client_id = %s) FOR NO KEY UPDATE"""


def perform(call: Call) -> Any:
    """The result of one call:

    a `Reading` for a `FactsQuery`; a `Quota` for a `CountedLogin`, or `UsedBefore`, or
    `ProofUsedBefore`, or None if it was not stored for another reason; whether it is the first use
    for an `AssertionUse` or a `ProofUse`;
    a `Throttle` for a `FailedLogin`, `FailedAuthentication` or `RejectedRequest` that has to wait,
    or None if it was stored; a `TokenReading` for a `TokenQuery`; a `TakenIndex` for a
    `TakeStatusIndex`; None for a `TokenRevocation` or an `ApiSecretUse`.
    Raises django.db.DatabaseError.
    """
    engine = connection.vendor
    if engine == "sqlite":
        return sqlite.perform([call])[0]
    if engine != "postgresql":
        raise ImproperlyConfigured(
            f"Logins cannot be stored by the database engine {engine}: use postgresql or sqlite."
        )
    if isinstance(call, FactsQuery):
        return load_facts(call)
    statement = postgresql.statement_for([call], waits=True)
    if isinstance(call, TokenQuery):  # it changes nothing, and is the first one of a request
        return statement.parse(fetch_with_reconnect(statement.sql, statement.parameters))[0]
    return statement.parse(fetch(statement.sql, statement.parameters))[0]


def perform_all(steps: Generator[Any, Any, Result]) -> Result:
    """What the steps return; each yields a call and gets its result. Raises as `perform` does."""
    result: Any = None
    try:
        while True:
            result = perform(steps.send(result))
    except StopIteration as end:
        returned: Result = end.value
        return returned


class DjangoStore:
    """The same for the steps of a request (`tokens.operations.steps`); nothing here waits."""

    async def perform(self, call: Call, ends_at: float = 0) -> Any:
        return perform(call)

    @asynccontextmanager
    async def client_locked(
        self, query: FactsQuery, ends_at: float
    ) -> AsyncIterator[tuple[Reading, Callable[[Call], Awaitable[Any]]]]:
        """As that of `AsyncStore`. Raises django.db.DatabaseError."""
        with transaction.atomic():
            if connection.vendor == "postgresql":
                fetch(LOCK_CLIENT, (query.client_id,))
            yield perform(query), self.perform
