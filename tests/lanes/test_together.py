"""Calls that wait go together, and each has its own result (both databases)."""

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from taxpayers.async_sql import _OWN_SESSION
from taxpayers.facts.values import FactsQuery
from taxpayers.models import RateLimitCounter
from tests.lanes.calls import (
    clients,
    counted,
    failed,
    note_batches,
    query,
    rejected,
    results,
    with_store,
)
from tests.support.queries import tables_read_by
from tokens.calls import (
    ApiSecretUse,
    AssertionUse,
    Call,
    ProofUse,
    TakeStatusIndex,
    TokenQuery,
    TokenRevocation,
)
from tokens.models import LoginEvent
from tokens.store import async_store
from tokens.store.async_store import AsyncStore
from tokens.store.lanes import MAX_WAITING, Overloaded, TooLate
from tokens.store.postgresql import statement_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls each statement, or transaction, had."""
    return note_batches(monkeypatch, len)


def used() -> list[int]:
    return sorted(RateLimitCounter.objects.values_list("used", flat=True))


def test_calls_of_the_next_few_turns_of_the_loop_go_in_one_statement(sizes: list[int]) -> None:
    calls = [counted(secret) for secret in clients(40)]

    async def send(store: AsyncStore, turn: int) -> list[Any]:
        for _ in range(turn):
            await asyncio.sleep(0)
        return await results(store, calls[turn::4])

    quotas = with_store(lambda store: asyncio.gather(*[send(store, turn) for turn in range(4)]))
    assert sizes == [40]
    assert [quota.used for part in quotas for quota in part] == [1] * 40
    assert LoginEvent.objects.count() == 40


def test_what_gathers_while_a_statement_is_under_way_goes_next(sizes: list[int]) -> None:
    first, *others = [counted(secret) for secret in clients(20)]

    async def one_after_the_other(store: AsyncStore) -> None:
        one = asyncio.ensure_future(results(store, [first]))
        while not sizes:
            await asyncio.sleep(0)
        await results(store, others)
        assert (await one)[0].used == 1

    with_store(one_after_the_other)
    assert sizes == [1, 19]
    assert LoginEvent.objects.count() == 20


@pytest.mark.postgresql
@pytest.mark.parametrize("call", [failed, rejected, lambda n: FactsQuery(f"ci{n}", "-", None)])
def test_what_is_refused_or_read_waits_a_moment_for_others(
    call: Callable[[int], Call], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    paused = dict.fromkeys(async_store._PAUSE_SECONDS, 0.3)
    monkeypatch.setattr(async_store, "_PAUSE_SECONDS", paused)

    async def one_after_the_other(store: AsyncStore) -> None:
        one = asyncio.ensure_future(results(store, [call(1)]))
        await asyncio.sleep(0.01)
        await results(store, [call(2)])
        await one

    with_store(one_after_the_other)
    assert sizes == [2]


@pytest.mark.parametrize("position", [0, 3, 5])
def test_one_bad_call_in_a_batch_fails_alone(position: int, sizes: list[int]) -> None:
    secrets = clients(6)
    stored = counted(clients(1)[0])
    calls = [counted(secret) for secret in secrets]
    calls[position] = counted(secrets[position], id_=stored.event.id)  # this id is there already

    async def after_another(store: AsyncStore) -> list[Any]:
        await results(store, [stored])
        return await results(store, calls)

    done = with_store(after_another)
    assert sizes == [1, 6, *[1] * 6]
    assert isinstance(done.pop(position), DatabaseError)
    assert [quota.used for quota in done] == [1] * 5
    assert used() == [0, *[1] * 6]
    assert LoginEvent.objects.count() == 6


def test_too_many_waiting_are_refused_at_once_and_the_others_are_served() -> None:
    async def overload(store: AsyncStore) -> list[Any]:
        ends_at = asyncio.get_running_loop().time() + 30
        sent = [store.perform(rejected(number), ends_at) for number in range(MAX_WAITING)]
        with pytest.raises(Overloaded):
            store.perform(rejected(MAX_WAITING), ends_at)
        return await asyncio.gather(*sent)

    assert with_store(overload) == [None] * MAX_WAITING
    assert LoginEvent.objects.count() == MAX_WAITING


def test_a_call_without_enough_time_left_is_not_sent(sizes: list[int]) -> None:
    late = counted(clients(1)[0])

    async def send_late(store: AsyncStore) -> None:
        with pytest.raises(TooLate):
            await store.perform(late, asyncio.get_running_loop().time() + 0.5)

    with_store(send_late)
    assert sizes == []


def test_a_lane_closes_after_what_is_under_way() -> None:
    calls: list[Call] = [counted(secret) for secret in clients(5)]
    calls += [failed(1), rejected(1)]

    async def close_at_once() -> list[Any]:
        store = AsyncStore(lambda before, database, after: None)
        sent = asyncio.ensure_future(results(store, calls))
        await asyncio.sleep(0)
        await store.close()
        assert sent.done()
        return await sent

    done = asyncio.run(close_at_once())
    assert [result.used for result in done[:5]] == [1] * 5
    assert done[5:] == [None, None]
    assert LoginEvent.objects.count() == 7


@pytest.mark.postgresql
@pytest.mark.parametrize("known_as_empty", ["", "ANALYZE; "])
def test_no_statement_reads_a_whole_table_however_small_it_was_when_planned(
    known_as_empty: str,
) -> None:
    (secret,) = clients(1)
    twice: list[Call] = [counted(secret), counted(secret)]
    id_, at = uuid7(), datetime.now(UTC)
    others: tuple[Call, ...] = (
        *(query(secret), failed(1), rejected(1), AssertionUse(id_, at), ProofUse(id_, at)),
        *(TokenQuery(id_, None, 1, "id", "lookup"), TokenRevocation(id_, at, 1), ApiSecretUse(1)),
        TakeStatusIndex(1, 1, "C1", "", "", (), (), epoch=1, check_at=None),
    )
    batches: list[list[Call]] = [twice[:1], twice, *([call] for call in others)]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(known_as_empty + _OWN_SESSION.replace("SET ", "SET LOCAL ").lstrip("; "))
        for batch in batches:
            statement = statement_for(batch)
            cursor.execute(f"EXPLAIN {statement.sql}", statement.parameters)
            plan = [line for (line,) in cursor.fetchall()]
            assert not re.search("Seq Scan|Materialize|by_taking", "\n".join(plan)), batch


@pytest.mark.postgresql
def test_for_a_wrong_secret_nothing_is_looked_up_behind_its_client() -> None:
    (secret,) = clients(1)
    sent = query(secret)
    read = {}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_OWN_SESSION.replace("SET ", "SET LOCAL ").lstrip("; "))
        for lookup in (sent.lookup, "another"):
            statement = statement_for([replace(sent, lookup=lookup)])
            read[lookup] = tables_read_by(statement.sql, statement.parameters)
    assert read["another"] == {"system_users", "credentials"}
    assert read[sent.lookup] > read["another"] | {"taxpayers", "client_usage"}
