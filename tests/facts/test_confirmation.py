"""No login is decided by facts that are out of date: its record confirms them (contract 1)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.http import HttpResponse
from pytest_django import Settings

from taxpayers.credentials import hash_secret
from taxpayers.facts.values import FactsQuery
from taxpayers.models import RateLimitCounter
from taxpayers.services import block_system_user, unblock_system_user
from tests.endpoint.test_event_loop import login_of, through_django
from tests.facts.registry_changes import CHANGES, SCOPES, WHY, Change, World
from tests.support.databases import present_url
from tests.support.erp import Erp, claims_of
from tests.wire.test_on_behalf_of import Send, both, committed
from tokens.calls import Call, CountedLogin
from tokens.models import LoginEvent
from tokens.operations.node import this_node
from tokens.store import async_store
from tokens.store import django_store as store

pytestmark = pytest.mark.django_db
on_postgresql = pytest.mark.postgresql  # SQLite is in this process: it knows nothing beside it


@pytest.fixture(autouse=True)
def _two_scopes(settings: Settings) -> None:
    settings.SCOPES = SCOPES


def outcome(response: HttpResponse) -> str:
    """The reason, or what the token is for."""
    if response.status_code == 200:
        claims = claims_of(response)
        return " ".join(["issued", claims["scope"], *claims.get("permissions", ())])
    if response.status_code == 429:
        return "rate_limited"
    return LoginEvent.objects.get(pk=response["correlationId"]).reason


def log_in_to(world: World, change: Change) -> str:
    on_behalf_of = str(world.represented.identifier) if change.on_behalf else None
    return outcome(world.erp.login(on_behalf_of=on_behalf_of))


def warm_world(change: Change) -> World:
    """One whose client this node knows as it is before the change."""
    world = World()
    change.prepare(world)
    assert [log_in_to(world, change) for _ in range(2)] == [change.before] * 2
    return world


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.name)
def test_the_next_login_obeys_a_change_by_sql(change: Change) -> None:
    world = warm_world(change)
    with connection.cursor() as cursor:
        for statement in world.sql(change.sql).split(";"):
            cursor.execute(statement)
    assert [log_in_to(world, change) for _ in range(2)] == [change.after] * 2


@on_postgresql
def test_facts_from_an_older_copy_of_the_file_are_out_of_date_too(erp: Erp) -> None:
    query = FactsQuery(erp.client_id, hash_secret(erp.client_secret), None)
    facts = this_node().local_facts
    erp.login()
    old = facts.find(query)
    assert old is not None
    block_system_user(system_user=erp.system_user, **WHY)
    assert outcome(erp.login()) == "system_user_blocked"
    facts.store(query, old)
    assert outcome(erp.login()) == "system_user_blocked"
    unblock_system_user(system_user=erp.system_user, **WHY)  # as it was, with another epoch
    facts.store(query, old)
    assert erp.login().status_code == 200
    present = facts.find(query)
    assert present is not None
    assert present.client == old.client
    assert present.epoch != old.epoch


@contextmanager
def limit_changes_before_each_count(
    erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[str]]:
    """Another session changes the client's limit before its login is counted, if it can."""
    done: list[str] = []
    perform, execute = store.perform, async_store._PostgresqlExecutor.execute
    options = "-c lock_timeout=200ms"
    with psycopg.connect(present_url(), autocommit=True, options=options) as session:

        def change_before(call: Call) -> None:
            if not isinstance(call, CountedLogin):
                return
            try:
                session.execute(
                    "UPDATE system_users SET logins_per_minute = %s WHERE id = %s",
                    (100 + len(done), erp.system_user.pk),
                )
                done.append("changed")
            except psycopg.errors.LockNotAvailable:  # no other session can change it now
                done.append("locked")

        def change_and_perform(call: Call) -> Any:
            change_before(call)
            return perform(call)

        async def change_and_execute(self: Any, calls: Sequence[Call], *others: Any) -> list[Any]:
            change_before(calls[0])
            return await execute(self, calls, *others)

        monkeypatch.setattr(store, "perform", change_and_perform)
        monkeypatch.setattr(async_store._PostgresqlExecutor, "execute", change_and_execute)
        yield done


@on_postgresql
@committed
@both
def test_a_client_that_changes_before_each_record_is_decided_under_a_lock_in_the_end(
    send: Send, erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with limit_changes_before_each_count(erp, monkeypatch) as done:
        answer = send(login_of(erp))
    # On the event loop each is counted twice: with others, and in its own statement.
    assert done == ["changed"] * (3 if send is through_django else 6) + ["locked"]
    assert answer.status == 200
    assert answer.headers["X-Rate-Limit-Limit"] == str(100 + len(done) - 2)
    assert LoginEvent.objects.count() == RateLimitCounter.objects.get().used == 1
