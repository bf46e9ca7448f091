"""What only the primary has stored is no record: a failover would lose it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from uuid_utils.compat import uuid7

from tests.lanes.calls import clients, counted, results, with_store
from tests.support.databases import present_url
from tokens.calls import Call, TokenRevocation
from tokens.models import LoginEvent, RevokedToken
from tokens.store.async_store import AsyncStore

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

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
