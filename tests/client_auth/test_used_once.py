"""Assertions and DPoP proofs are used once: on all nodes, in a batch, at the same moment."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from uuid_utils.compat import uuid7

from taxpayers.models import RateLimitCounter
from tests.lanes.calls import clients, counted, is_stored, opened_store, results, with_store
from tokens.calls import AssertionUse, CountedLogin, ProofUse, ProofUsedBefore, UsedBefore
from tokens.models import LoginEvent, UsedAssertion, UsedProof
from tokens.rate_limits.quota import Quota
from tokens.store import django_store as store
from tokens.store.async_store import AsyncStore

pytestmark = pytest.mark.django_db(transaction=True)

# What is used, as a field of a login; the table of it; and what a second use is answered with.
KINDS: dict[str, tuple[Any, Any, Any]] = {
    "assertion": (AssertionUse, UsedAssertion, UsedBefore),
    "proof": (ProofUse, UsedProof, ProofUsedBefore),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def a_use(kind: str) -> Any:
    return KINDS[kind][0](uuid4(), datetime.now(UTC) + timedelta(minutes=1))


def with_use(login: CountedLogin, kind: str, use: Any = None) -> CountedLogin:
    return login._replace(**{kind: use or a_use(kind)})


@each_kind
def test_the_login_and_its_use_are_stored_together_or_not_at_all(kind: str) -> None:
    (secret,), table = clients(1), KINDS[kind][1]
    assert store.perform(with_use(counted(secret)._replace(epoch=7), kind)) is None
    assert is_stored(counted(secret, limit=1))
    assert store.perform(with_use(counted(secret, limit=1), kind)) is None
    assert not table.objects.exists()
    use = a_use(kind)
    assert is_stored(with_use(counted(secret), kind, use))
    assert table.objects.values_list("pk", "expires_at").get() == (use.id, use.expires_at)


@each_kind
def test_a_second_use_stores_nothing(kind: str) -> None:
    (secret,), use = clients(1), a_use(kind)
    assert is_stored(with_use(counted(secret), kind, use))
    assert isinstance(store.perform(with_use(counted(secret), kind, use)), KINDS[kind][2])
    assert LoginEvent.objects.count() == 1
    assert RateLimitCounter.objects.get(pk=secret.system_user_id).used == 1


def test_a_proof_that_was_used_leaves_the_assertion_unused() -> None:
    (secret,), used, assertion = clients(1), a_use("proof"), a_use("assertion")
    store.perform(used)
    login = with_use(counted(secret), "assertion", assertion)
    assert isinstance(store.perform(login._replace(proof=used)), ProofUsedBefore)
    assert not UsedAssertion.objects.exists()
    assert is_stored(with_use(login, "proof"))
    again = with_use(counted(secret), "assertion", assertion)
    assert isinstance(store.perform(with_use(again, "proof")), UsedBefore)


@each_kind
def test_in_a_batch_each_login_has_its_own_result(kind: str) -> None:
    one, other, with_secret, refused, both = clients(5)
    used, used_assertion = a_use(kind), a_use("assertion")
    store.perform(used)
    store.perform(used_assertion)
    calls = [
        with_use(counted(one), kind),
        with_use(counted(other), kind, used),
        counted(with_secret),
        with_use(counted(refused), kind)._replace(epoch=7),
        with_use(counted(both), "proof")._replace(assertion=used_assertion),
        with_use(counted(other), "proof")._replace(assertion=a_use("assertion")),
    ]
    found = with_store(lambda store: results(store, calls))
    right = [Quota, KINDS[kind][2], Quota, type(None), UsedBefore, Quota]
    assert [type(result) for result in found] == right
    stored = set(LoginEvent.objects.values_list("client_id", flat=True))
    assert stored == {row.system_user.client_id for row in (one, with_secret, other)}


@each_kind
def test_of_many_nodes_at_the_same_moment_one_is_the_first(kind: str) -> None:
    secrets, (_, table, used_before) = clients(3), KINDS[kind]

    async def on_four_nodes(_one: AsyncStore) -> list[list[Any]]:
        async with AsyncExitStack() as opened:
            nodes = [await opened.enter_async_context(opened_store()) for _ in range(4)]
            found = []
            for _round in range(20):
                calls = [with_use(login, kind) for login in logins]
                if kind == "proof":
                    calls = [with_use(call, "assertion") for call in calls]
                again = (
                    [login._replace(event=login.event._replace(id=uuid7())) for login in calls]
                    for _ in nodes
                )
                found.append(await asyncio.gather(*map(results, nodes, again)))
            return found

    logins = [counted(secret) for secret in secrets]
    for of_nodes in with_store(on_four_nodes):
        for of_client in zip(*of_nodes, strict=True):
            # None: another node had the counter locked; the login is then decided again.
            assert sum(isinstance(result, Quota) for result in of_client) == 1
            assert all(isinstance(result, Quota | used_before | None) for result in of_client)
    assert LoginEvent.objects.count() == table.objects.count() == 60
    assert UsedAssertion.objects.count() == 60


@each_kind
def test_a_use_without_a_login_is_stored_once(kind: str) -> None:
    uses = [a_use(kind), a_use(kind)]
    found = with_store(lambda store: results(store, [uses[0], uses[1], uses[0]]))
    assert found == [True, True, False]
    assert store.perform(uses[1]) is False
