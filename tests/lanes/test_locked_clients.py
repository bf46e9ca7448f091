"""Clients whose row another session has locked: their logins wait for it, and no others do."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import OperationalError

from taxpayers.models import Credential, RateLimitCounter
from tests.lanes.calls import clients, counted, note_batches, opened_store, results, with_store
from tests.servers.processes import slowness
from tests.support.databases import present_url
from tests.tokens.test_rate_limits import EPOCH
from tokens.calls import Call, TakenIndex, TakeStatusIndex
from tokens.models import LoginEvent
from tokens.rate_limits.quota import Quota
from tokens.store import async_store
from tokens.store.async_store import AsyncStore

# SQLite has one writer: no login meets a locked row there.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

Session = psycopg.AsyncConnection[Any]
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The clients of each statement that counts logins, in order."""
    return note_batches(monkeypatch, lambda calls: [call.system_user_id for call in calls])


@asynccontextmanager
async def locked(secrets: Sequence[Credential]) -> AsyncIterator[Session]:
    """Another session has the rows of these clients locked until it commits or rolls back."""
    async with await psycopg.AsyncConnection.connect(present_url()) as other:
        ids = [secret.system_user_id for secret in secrets]
        await other.execute(
            "SELECT FROM client_usage WHERE system_user_id = ANY(%s) FOR UPDATE", [ids]
        )
        yield other


async def sent(store: AsyncStore, calls: Sequence[Call], waiting: int) -> "asyncio.Future[Any]":
    """The results to come, as soon as so many statements wait for a lock."""
    done = asyncio.ensure_future(results(store, calls))
    async with await psycopg.AsyncConnection.connect(present_url(), autocommit=True) as watching:
        while (await (await watching.execute(_WAITING)).fetchone()) != (waiting,):
            assert not done.done()
            await asyncio.sleep(0.005)
    return done


def used(secrets: Sequence[Credential]) -> list[int]:
    return [RateLimitCounter.objects.get(pk=secret.system_user_id).used for secret in secrets]


def test_they_wait_in_one_statement_in_their_order_and_the_others_are_answered(
    batches: list[list[int]],
) -> None:
    mine, *others = clients(4)
    calls = [counted(mine, 3), *(counted(other) for other in others)]
    calls += [counted(mine, 3) for _ in range(3)]
    ids = [call.system_user_id for call in calls]

    async def while_locked(store: AsyncStore) -> tuple[list[Any], list[Any]]:
        async with locked([mine]) as other:
            done = await sent(store, calls, waiting=1)
            later = [counted_before.pop(), counted_before.pop()]
            again = asyncio.ensure_future(results(store, [later[0]]))
            assert [quota.used for quota in await results(store, [later[1]])] == [2]
            assert not again.done()
            await other.rollback()
            return await done, await again

    counted_before = [counted(others[0]), counted(mine, 3)]
    done, again = with_store(while_locked)
    assert [quota and quota.used for quota in done] == [1, 1, 1, 1, 2, 3, None]
    assert again == [None]  # the limit is reached
    assert used([mine, *others]) == [3, 2, 1, 1]
    assert LoginEvent.objects.count() == 7
    own = mine.system_user_id
    assert batches == [ids, [own] * 4, [others[0].system_user_id], [own]]


def test_a_locked_row_makes_only_its_client_wait_and_never_longer_than_two_seconds() -> None:
    mine, *others = clients(6)
    calls = [counted(secret) for secret in (*[mine] * 6, *others)]

    async def timed(store: AsyncStore, call: Call) -> tuple[Any, float]:
        began = time.monotonic()
        (result,) = await results(store, [call])
        return result, time.monotonic() - began

    async def while_locked(store: AsyncStore) -> list[tuple[Any, float]]:
        async with locked([mine]):
            return await asyncio.gather(*(timed(store, call) for call in calls))

    found = with_store(while_locked)
    waited, answered = found[:6], found[6:]
    assert all(isinstance(result, OperationalError) for result, _ in waited)
    assert max(seconds for _, seconds in waited) < 1.2 + slowness()
    assert all(isinstance(result, Quota) for result, _ in answered)
    assert max(seconds for _, seconds in answered) < slowness()
    assert LoginEvent.objects.count() == 5


def test_a_change_under_way_is_waited_for_and_obeyed() -> None:
    mine, other = clients(2)
    calls = [counted(mine), counted(other), counted(mine)]
    take = TakeStatusIndex(
        *(mine.system_user_id, mine.pk, "C1", "", ""), ("A",), (), calls[0].epoch, None
    )

    async def while_changed(store: AsyncStore) -> list[Any]:
        async with locked([]) as session:
            await session.execute(
                "UPDATE client_usage SET epoch = %s WHERE system_user_id = %s",
                [EPOCH, mine.system_user_id],
            )
            done = await sent(store, [*calls, take], waiting=2)
            await session.commit()
            return list(await done)

    first, quota, second, taken = with_store(while_changed)
    assert (first, second) == (None, None)  # decided again, by the facts of the new epoch
    assert isinstance(quota, Quota)
    assert isinstance(taken, TakenIndex)
    assert used([mine, other]) == [0, 1]


def test_more_locked_clients_than_connections_are_all_answered() -> None:
    secrets = clients(2 * async_store._MAX_LOCKED)
    calls = [counted(secret) for secret in secrets for _ in range(2)]

    async def while_locked(store: AsyncStore) -> list[Any]:
        async with locked(secrets) as other:
            done = await sent(store, calls, waiting=async_store._MAX_LOCKED)
            await other.rollback()
            return list(await done)

    assert [quota.used for quota in with_store(while_locked)] == [1, 2] * len(secrets)
    assert used(secrets) == [2] * len(secrets)


def test_a_connection_that_ends_while_it_waits_costs_no_answer_and_stores_nothing_twice() -> None:
    (secret,) = clients(1)
    calls = [counted(secret, 3) for _ in range(3)]

    async def end_it(store: AsyncStore) -> list[Any]:
        async with locked([secret]) as other:
            done = await sent(store, calls, waiting=1)
            url = present_url()
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as ending:
                await ending.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                    " WHERE wait_event_type = 'Lock'"
                )
            await other.rollback()
            return list(await done)

    assert [quota.used for quota in with_store(end_it)] == [1, 2, 3]
    assert LoginEvent.objects.count() == 3


def test_nodes_whose_logins_meet_count_each_at_its_first_decision() -> None:
    """Many logins of the same clients, in opposite orders, on four nodes at once."""
    secrets = clients(5)
    of_nodes = [
        [counted(secret, 60) for secret in secrets[:: (-1) ** node] for _ in range(4)]
        for node in range(4)
    ]

    async def at_once(_one: AsyncStore) -> list[list[Any]]:
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(opened_store()) for _ in of_nodes]
            now = datetime.now(UTC)  # an event of two seconds ago would not be stored
            calls = [[c._replace(event=c.event._replace(at=now)) for c in one] for one in of_nodes]
            return await asyncio.gather(*map(results, stores, calls))

    found = [quota for of_node in with_store(at_once) for quota in of_node]
    assert [quota for quota in found if not isinstance(quota, Quota)] == []
    assert sorted(quota.used for quota in found) == sorted([*range(1, 17)] * 5)
    assert used(secrets) == [16] * 5
