"""No login is decided by facts that are out of date: its record confirms them (contract 1)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import OperationalError, connection, transaction
from django.http import HttpResponse
from pytest_django import Settings

from taxpayers.credentials import hash_secret
from taxpayers.facts.local import SharedFacts
from taxpayers.facts.values import FactsQuery
from taxpayers.models import RateLimitCounter, SystemUser
from taxpayers.services import block_system_user, issue_secret, unblock_system_user
from tests.facts.registry_changes import BY, CHANGES, DAY, HOUR, NOW, SCOPES, WHY, Change, World
from tests.support.databases import another_session
from tests.support.erp import FORM, Erp, claims_of, new_erp
from tests.support.queries import statements_sent
from tokens.calls import Call, CountedLogin
from tokens.models import FailureBucket, LoginEvent
from tokens.operations.login import EndedLogin, log_in
from tokens.operations.node import Node, this_node
from tokens.operations.view import run_now
from tokens.request.arrival import receive
from tokens.store import django_store as store

pytestmark = pytest.mark.django_db
MIB = 2**20
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


# --- Each change, at the next login ---------------------------------------------------------------
@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.name)
def test_the_next_login_obeys_a_change_by_sql(change: Change) -> None:
    world = warm_world(change)
    with connection.cursor() as cursor:
        for statement in world.sql(change.sql).split(";"):
            cursor.execute(statement)
    assert [log_in_to(world, change) for _ in range(2)] == [change.after] * 2


@on_postgresql
@pytest.mark.django_db(transaction=True)
def test_the_next_login_obeys_every_change_by_another_session() -> None:
    answered = {}
    with another_session() as other, other.cursor() as cursor:
        for change in CHANGES:
            world = warm_world(change)
            cursor.execute(world.sql(change.sql))
            answered[change.name] = log_in_to(world, change)
    assert answered == {change.name: change.after for change in CHANGES}


def test_a_new_secret_logs_in_at_once_and_the_old_one_still_does(erp: Erp) -> None:
    assert erp.login().status_code == 200
    issued = issue_secret(system_user=erp.system_user, **BY)
    assert erp.login(client_secret=issued.credentials.client_secret).status_code == 200
    assert erp.login().status_code == 200


def test_the_next_token_is_for_the_taxpayer_that_a_client_is_moved_to(erp: Erp) -> None:
    assert claims_of(erp.login())["sub"] == erp.tin
    other = new_erp()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE system_users SET taxpayer_id = %s WHERE id = %s",
            [other.system_user.taxpayer_id, erp.system_user.pk],
        )
        assert claims_of(erp.login())["sub"] == other.tin
        cursor.execute("UPDATE taxpayers SET tin = 'C7654321000' WHERE tin = %s", [other.tin])
        assert claims_of(erp.login())["sub"] == "C7654321000"


def test_a_change_that_is_rolled_back_changes_nothing(erp: Erp) -> None:
    assert erp.login().status_code == 200
    with transaction.atomic():
        block_system_user(system_user=erp.system_user, **WHY)
        transaction.set_rollback(True)
    with statements_sent() as sent:
        assert erp.login().status_code == 200
    assert connection.vendor == "sqlite" or sent == ["WITH"]


# --- Nodes ----------------------------------------------------------------------------------------
def new_node(folder: Path) -> Node:
    return Node(SharedFacts(folder, max_bytes=16 * MIB, key=b"key"))


def log_in_on(node: Node, erp: Erp) -> EndedLogin:
    meta = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": FORM, "REMOTE_ADDR": "192.0.2.1"}
    return run_now(log_in(node, *receive(meta, urlencode(erp.form).encode(), node.clock.now())))


@on_postgresql
def test_a_change_is_obeyed_on_every_node_whichever_made_it(erp: Erp, tmp_path: Path) -> None:
    nodes = [new_node(tmp_path / name) for name in "abc"]
    SystemUser.objects.update(logins_per_minute=0)

    def outcomes() -> list[str]:
        return [log_in_on(node, erp).outcome for node in nodes]

    for _ in range(2):
        assert outcomes() == ["issued"] * 3
        block_system_user(system_user=erp.system_user, **WHY)
        assert outcomes() == ["system_user_blocked"] * 3
        unblock_system_user(system_user=erp.system_user, **WHY)
    assert outcomes() == ["issued"] * 3


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


# --- Failures are never decided from memory -------------------------------------------------------
@pytest.mark.parametrize(
    ("ended", "lives", "reason"),
    [
        ({"revoked_at": NOW, "slot": None}, {"revoked_at": None, "slot": 1}, "secret_revoked"),
        ({"expires_at": NOW - HOUR}, {"expires_at": NOW + DAY}, "secret_expired"),
    ],
)
def test_a_secret_that_has_ended_is_looked_up_before_it_counts_as_a_failure(
    erp: Erp, ended: dict[str, Any], lives: dict[str, Any], reason: str
) -> None:
    erp.system_user.credentials.update(**ended)
    assert outcome(erp.login()) == reason  # what the node knows now
    with statements_sent() as sent:
        assert outcome(erp.login()) == reason
    assert sent[0] == "SELECT"
    failures = FailureBucket.objects.values_list("failures", flat=True)
    assert set(failures) == {2}
    erp.system_user.credentials.update(**lives)
    assert erp.login().status_code == 200
    assert set(failures.all()) == {2}


# --- Changes between the decision and its record --------------------------------------------------
@pytest.fixture
def before_each_count(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], object]]]:
    """What happens just before the 1st, 2nd, … statement that would record a login."""
    actions: list[Callable[[], object]] = []
    perform = store.perform

    def act_and_perform(call: Call) -> Any:
        if isinstance(call, CountedLogin) and actions:
            actions.pop(0)()
        return perform(call)

    monkeypatch.setattr(store, "perform", act_and_perform)
    yield actions
    assert actions == []


@pytest.mark.parametrize("logins_before", [0, 1])
def test_a_change_between_decision_and_record_is_obeyed(
    erp: Erp, logins_before: int, before_each_count: list[Callable[[], object]]
) -> None:
    for _ in range(logins_before):
        erp.login()
    before_each_count.append(lambda: block_system_user(system_user=erp.system_user, **WHY))
    assert outcome(erp.login()) == "system_user_blocked"
    before_each_count.append(lambda: unblock_system_user(system_user=erp.system_user, **WHY))
    assert erp.login().status_code == 200
    before_each_count += [
        lambda: block_system_user(system_user=erp.system_user, **WHY),
        lambda: unblock_system_user(system_user=erp.system_user, **WHY),
    ]
    assert erp.login().status_code == 200
    stored = list(LoginEvent.objects.order_by("pk").values_list("reason", flat=True))
    assert stored == [""] * logins_before + ["system_user_blocked", "", ""]
    assert RateLimitCounter.objects.get().used == len(stored)


def test_a_client_that_is_deleted_between_decision_and_record_gets_nothing(
    erp: Erp, before_each_count: list[Callable[[], object]]
) -> None:
    before_each_count.append(lambda: SystemUser.objects.all().delete())
    response = erp.login()
    assert outcome(response) == "invalid_credentials"
    assert LoginEvent.objects.count() == 1


@on_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_client_that_changes_before_each_record_is_decided_under_a_lock_in_the_end(
    erp: Erp, before_each_count: list[Callable[[], object]]
) -> None:
    done: list[str] = []
    with another_session() as other, other.cursor() as cursor:
        cursor.execute("SET lock_timeout TO '200ms'")

        def change() -> None:
            limit = 100 + len(done)
            try:
                cursor.execute(
                    "UPDATE system_users SET logins_per_minute = %s WHERE id = %s",
                    [limit, erp.system_user.pk],
                )
                done.append("changed")
            except OperationalError:  # nobody changes it now
                done.append("locked")

        before_each_count += [change] * 4
        response = erp.login()
    assert done == ["changed"] * 3 + ["locked"]
    assert response.status_code == 200
    assert response["X-Rate-Limit-Limit"] == "102"
    assert LoginEvent.objects.count() == RateLimitCounter.objects.get().used == 1
