"""Calls of logins, as they are sent to the database, and the store that sends them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from taxpayers.facts.values import FactsQuery
from taxpayers.models import Credential, RateLimitCounter
from tests.support import make
from tokens.calls import Call, CountedLogin, Event, FailedLogin, RejectedRequest
from tokens.rate_limits.quota import Quota
from tokens.store import async_store, django_store
from tokens.store.async_store import AsyncStore
from tokens.store.lanes import CALL_SECONDS

Result = TypeVar("Result")
_NULL = ("since", "system_user_id", "secret_id", "source_address")  # where they are empty


def clients(number: int) -> list[Credential]:
    return [make.credential() for _ in range(number)]


def event(reason: str = "", **fields: Any) -> Event:
    """One of now; fields that are not given are empty."""
    given = {"id": uuid7(), "at": datetime.now(UTC), "reason": reason} | fields
    columns: dict[str, Any] = dict.fromkeys(Event._fields, "") | dict.fromkeys(_NULL) | given
    return Event(**columns)


def counted(secret: Credential, limit: int = 0, id_: UUID | None = None) -> CountedLogin:
    user = secret.system_user
    epoch = RateLimitCounter.objects.get(pk=user.pk).epoch
    stored = event(client_id=user.client_id, system_user_id=user.pk, secret_id=secret.pk)
    return CountedLogin(stored._replace(id=id_ or stored.id), user.pk, secret.pk, limit, epoch)


def is_stored(login: CountedLogin) -> bool:
    return isinstance(django_store.perform(login), Quota)


def failed(bucket: int) -> FailedLogin:
    return FailedLogin(event("invalid_credentials"), 2 * bucket, 2 * bucket + 1)


def rejected(bucket: int) -> RejectedRequest:
    return RejectedRequest(event("malformed_request"), 131_072 + bucket)


def query(secret: Credential) -> FactsQuery:
    return FactsQuery(secret.system_user.client_id, secret.lookup, None)


async def results(store: AsyncStore, calls: Sequence[Call]) -> list[Any]:
    """What each call results in, an error too; all are sent at the same moment."""
    ends_at = asyncio.get_running_loop().time() + CALL_SECONDS
    sent = [store.perform(call, ends_at) for call in calls]
    return await asyncio.gather(*sent, return_exceptions=True)


@asynccontextmanager
async def opened_store() -> AsyncIterator[AsyncStore]:
    store = AsyncStore(lambda before, database, after: None)
    try:
        yield store
    finally:
        await store.close()


def with_store(use: Callable[[AsyncStore], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with opened_store() as store:
            return await use(store)

    return asyncio.run(run())


def note_batches(monkeypatch: pytest.MonkeyPatch, of: Callable[[Sequence[Any]], Any]) -> list[Any]:
    """What `of` says of the calls of each statement, or transaction, in order."""
    found: list[Any] = []
    executors: tuple[Any, ...] = (async_store._PostgresqlExecutor, async_store._SqliteExecutor)
    for executor in executors:

        async def noting(
            self: Any, calls: Sequence[Any], send_by: float, execute: Any = executor.execute
        ) -> Any:
            found.append(of(calls))
            return await execute(self, calls, send_by)

        monkeypatch.setattr(executor, "execute", noting)
    return found
