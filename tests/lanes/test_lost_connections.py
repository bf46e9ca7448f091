"""Connections that end, hang or lose an answer: each login has its own, and is stored once."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection
from uuid_utils.compat import uuid7

from taxpayers.async_sql import AsyncSession
from taxpayers.models import Credential, RateLimitCounter
from tests.lanes.calls import clients, counted, failed, query, rejected, results, with_store
from tests.servers.processes import slowness, stopping
from tests.servers.tcp_proxy import TcpProxy
from tests.support.databases import present_url
from tokens.calls import Call, CountedLogin, TokenRevocation, Write
from tokens.models import LoginEvent, RevokedToken
from tokens.store.async_store import AsyncStore
from tokens.store.postgresql_event import MAX_AGE_SECONDS

# SQLite has no server whose connections could end.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]
LOGINS = 12
Kind = Callable[[list[Credential]], list[Call]]
KINDS: dict[str, Kind] = {
    "counted": lambda secrets: [counted(secret) for secret in secrets],
    "failed": lambda secrets: [failed(number) for number, _ in enumerate(secrets)],
    "rejected": lambda secrets: [rejected(number) for number, _ in enumerate(secrets)],
    "query": lambda secrets: [query(secret) for secret in secrets],
}
every_kind = pytest.mark.parametrize("kind", KINDS)
# Not of this process's Django, nor of the session that asks.
OTHERS = (
    "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND application_name = '' AND query LIKE '%%json%%'"
)


def another_session() -> psycopg.Connection[Any]:
    return psycopg.connect(present_url(), autocommit=True)


def pids(session: psycopg.Connection[Any], condition: str = "") -> list[int]:
    """The server processes of the lanes."""
    return [row[0] for row in session.execute(f"SELECT pid {OTHERS} {condition}".encode())]


def terminate(session: psycopg.Connection[Any], condition: str = "") -> int:
    found = session.execute(f"SELECT pg_terminate_backend(pid, 5000) {OTHERS} {condition}".encode())
    return len(found.fetchall())


def assert_each_is_stored_once(kind: str, calls: list[Call], done: list[Any]) -> None:
    assert [one for one in done if isinstance(one, Exception)] == []
    stored = 0 if kind == "query" else len(calls)
    assert LoginEvent.objects.count() == stored
    if kind == "counted":
        assert [quota.used for quota in done] == [1] * len(calls)
        ids = [call.system_user_id for call in calls if isinstance(call, CountedLogin)]
        counters = RateLimitCounter.objects.filter(pk__in=ids)
        assert [counter.used for counter in counters] == [1] * stored


def warm(kind: str) -> list[Call]:
    """Calls of other clients, so that the lane has its connection and its statement."""
    if kind in ("failed", "rejected"):
        return [failed(1000) if kind == "failed" else rejected(1000)]
    return KINDS[kind](clients(1))


@every_kind
@pytest.mark.parametrize("behind_pooler", [False, True])
def test_sessions_that_ended_while_nothing_was_under_way_cost_no_answer(
    kind: str, behind_pooler: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if behind_pooler:  # nothing stays prepared
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], "prepare_threshold", None)
    first, calls = warm(kind), KINDS[kind](clients(LOGINS))

    async def send_after_a_kill(store: AsyncStore) -> list[Any]:
        await results(store, first)
        with another_session() as other:
            assert await asyncio.to_thread(terminate, other) == 1
        return await results(store, calls)

    done = with_store(send_after_a_kill)
    LoginEvent.objects.filter(pk__in=ids(first)).delete()
    assert_each_is_stored_once(kind, calls, done)


def ids(calls: list[Call]) -> list[UUID]:
    return [call.event.id for call in calls if isinstance(call, Write)]


@every_kind
def test_sessions_that_end_while_a_batch_is_under_way_cost_no_answer(kind: str) -> None:
    calls = KINDS[kind](clients(LOGINS))
    table = "system_users" if kind == "query" else "login_events"

    async def kill_while_it_waits(store: AsyncStore) -> list[Any]:
        with another_session() as other, another_session() as locking:
            await asyncio.to_thread(locking.execute, "BEGIN")
            await asyncio.to_thread(locking.execute, f"LOCK TABLE {table}".encode())
            sent = asyncio.ensure_future(results(store, calls))
            while not await asyncio.to_thread(terminate, other, "AND wait_event_type = 'Lock'"):
                await asyncio.sleep(0.01)
            await asyncio.to_thread(locking.execute, "ROLLBACK")
            return await sent

    assert_each_is_stored_once(kind, calls, with_store(kill_while_it_waits))


@every_kind
def test_an_answer_that_is_lost_costs_nobody_one_and_stores_nothing_twice(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, calls = warm(kind), KINDS[kind](clients(LOGINS))
    done = with_store(lambda store: lose_the_answer(store, first, calls, monkeypatch))
    LoginEvent.objects.filter(pk__in=ids(first)).delete()
    assert_each_is_stored_once(kind, calls, done)


async def lose_the_answer(
    store: AsyncStore, first: list[Call], calls: list[Call], monkeypatch: pytest.MonkeyPatch
) -> list[Any]:
    """The results of calls that are executed, and whose answer does not arrive."""
    settings = connection.settings_dict
    wire = TcpProxy(int(settings["PORT"]))
    with stopping(wire), monkeypatch.context() as patch:
        patch.setitem(settings, "PORT", str(wire.port))
        await results(store, first)
        wire.loses_next_answer = True
        done = await results(store, calls)
        assert not wire.loses_next_answer
        await store.close()
    return done


def test_the_last_login_of_a_window_whose_answer_is_lost_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was stored, and so it is not told that it has to wait."""
    first = warm("counted")
    calls: list[Call] = [counted(secret, limit=1) for secret in clients(LOGINS)]
    done = with_store(lambda store: lose_the_answer(store, first, calls, monkeypatch))
    assert [quota and quota.used for quota in done] == [1] * LOGINS


def test_a_failure_whose_answer_is_lost_does_not_wait_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The eleventh failure begins the first pause."""
    before: list[Call] = [failed(7) for _ in range(10)]
    last: list[Call] = [failed(7)]
    assert with_store(lambda store: lose_the_answer(store, before, last, monkeypatch)) == [None]
    assert LoginEvent.objects.count() == 11


@every_kind
def test_a_server_that_hangs_gives_each_an_error_in_time_and_stores_nothing_later(
    kind: str,
) -> None:
    first, calls = warm(kind), KINDS[kind](clients(LOGINS))

    async def send_while_it_hangs(store: AsyncStore) -> tuple[list[Any], float]:
        await results(store, first)
        with another_session() as other:
            stopped = await asyncio.to_thread(pids, other)
            assert len(stopped) == 1
            os.kill(stopped[0], signal.SIGSTOP)
            try:
                begin = time.monotonic()
                done = await results(store, calls)
                seconds = time.monotonic() - begin
                await asyncio.sleep(MAX_AGE_SECONDS + 0.1 - seconds)
            finally:
                os.kill(stopped[0], signal.SIGCONT)
            while stopped[0] in await asyncio.to_thread(pids, other):
                await asyncio.sleep(0.01)
        return done, seconds

    done, seconds = with_store(send_while_it_hangs)
    assert [type(one) for one in done if not isinstance(one, OperationalError)] == []
    assert seconds < 1 + slowness()
    assert LoginEvent.objects.exclude(pk__in=ids(first)).count() == 0


CHANGES = (
    "client_usage ALTER COLUMN used TYPE bigint",
    "credentials ALTER COLUMN hint TYPE text",
    "failure_buckets ALTER COLUMN retry_at TYPE timestamptz(3)",
    "login_events ALTER COLUMN detail TYPE text",
)


def of_now(calls: list[Any]) -> list[Call]:
    """The calls as if they had just begun: what began MAX_AGE_SECONDS ago is not stored."""
    at = datetime.now(UTC)
    return [
        one._replace(event=one.event._replace(at=at)) if hasattr(one, "event") else one
        for one in calls
    ]


@every_kind
def test_a_column_that_changes_costs_no_answer(kind: str) -> None:
    """All in one test: after it the database, whose tables changed, is made anew."""
    first, calls = warm(kind), [KINDS[kind](clients(LOGINS)) for _ in CHANGES]

    async def send_after_each_change(store: AsyncStore) -> list[Any]:
        await results(store, first)
        done: list[Any] = []
        with another_session() as other:
            for change, some in zip(CHANGES, calls, strict=True):
                await asyncio.to_thread(other.execute, f"ALTER TABLE {change}".encode())
                done += await results(store, of_now(some))
        return done

    done = with_store(send_after_each_change)
    LoginEvent.objects.filter(pk__in=ids(first)).delete()
    assert_each_is_stored_once(kind, [*chain(*calls)], done)


def test_a_text_with_a_nul_is_refused_and_never_cut() -> None:
    async def ask(text: str) -> Any:
        session = AsyncSession()
        try:
            return await session.fetch("SELECT %s::text", (text,))
        finally:
            await session.close()

    assert asyncio.run(ask("whole")) == [("whole",)]
    with pytest.raises(DatabaseError):
        asyncio.run(ask("cut\0here"))


WAITING = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@contextmanager
def commits_waiting_for_ever() -> Iterator[psycopg.Connection[Any]]:
    """Commits of new sessions wait for a standby that is not there; the session of a superuser.

    Those of older sessions go on.
    """
    with psycopg.connect(present_url(), autocommit=True) as session:
        alter = f'ALTER DATABASE "{session.info.dbname}"'
        session.execute(f"{alter} SET synchronous_commit = on".encode())
        try:
            _name_standby(session, "nobody")
            yield session
        finally:
            _name_standby(session, "")
            session.execute(f"{alter} RESET synchronous_commit".encode())


def _name_standby(session: psycopg.Connection[Any], name: str) -> None:
    session.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'".encode())
    session.execute("SELECT pg_reload_conf()")


def end_what_waits(superuser: psycopg.Connection[Any]) -> int:
    found = superuser.execute(f"SELECT pg_terminate_backend(pid, 5000) {WAITING}".encode())
    return len(found.fetchall())


def result_of(call: Call) -> Any:
    """Its session ends while its commit waits, and the store asks again on another one."""

    async def end_its_session(store: AsyncStore) -> list[Any]:
        with commits_waiting_for_ever() as superuser:
            sent = asyncio.ensure_future(results(store, [call]))
            while not await asyncio.to_thread(end_what_waits, superuser):
                assert not sent.done()
                await asyncio.sleep(0.01)
            return await sent

    return with_store(end_its_session)[0]


def test_a_login_whose_session_ends_before_a_standby_confirms_it_gets_no_token() -> None:
    call = counted(clients(1)[0])
    assert isinstance(result_of(call), OperationalError)
    assert LoginEvent.objects.filter(pk=call.event.id).exists()  # everybody sees it


def test_a_revocation_that_no_standby_has_is_not_confirmed_to_the_client() -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    assert not RevokedToken.objects.exists()  # and Django's session began before
    jti = uuid7()
    assert isinstance(result_of(TokenRevocation(jti, at, None)), OperationalError)
    assert RevokedToken.objects.filter(pk=jti).exists()
