"""A proof is used once: on all nodes, in a batch, at the same moment (both databases)."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from uuid_utils.compat import uuid7

from taxpayers.models import RateLimitCounter
from tests.lanes.calls import clients, counted, opened_store, results, with_store
from tokens.calls import AssertionUse, CountedLogin, ProofUse, ProofUsedBefore, UsedBefore
from tokens.models import LoginEvent, UsedAssertion, UsedProof
from tokens.rate_limits.quota import Quota
from tokens.store import django_store as store
from tokens.store.async_store import AsyncStore

pytestmark = pytest.mark.django_db(transaction=True)


def a_proof() -> ProofUse:
    return ProofUse(uuid4(), datetime.now(UTC) + timedelta(minutes=1))


def an_assertion() -> AssertionUse:
    return AssertionUse(*a_proof())


def with_proof(login: CountedLogin, use: ProofUse | None) -> CountedLogin:
    return login._replace(proof=use)


def test_the_login_and_its_proof_are_stored_together_or_not_at_all() -> None:
    (secret,) = clients(1)
    assert store.perform(counted(secret)._replace(epoch=7, proof=a_proof())) is None
    assert isinstance(store.perform(counted(secret, limit=1)), Quota)
    assert store.perform(with_proof(counted(secret, limit=1), a_proof())) is None
    assert not UsedProof.objects.exists()
    use = a_proof()
    assert isinstance(store.perform(with_proof(counted(secret), use)), Quota)
    row = UsedProof.objects.get()
    assert (row.pk, row.expires_at) == (use.id, use.expires_at)


def test_a_second_use_stores_nothing_and_leaves_the_assertion_unused() -> None:
    (secret,) = clients(1)
    use, assertion = a_proof(), an_assertion()
    assert isinstance(store.perform(with_proof(counted(secret), use)), Quota)
    again = with_proof(counted(secret), use)._replace(assertion=assertion)
    assert isinstance(store.perform(again), ProofUsedBefore)
    assert LoginEvent.objects.count() == 1
    assert RateLimitCounter.objects.get(pk=secret.system_user_id).used == 1
    assert not UsedAssertion.objects.exists()
    with_another = with_proof(counted(secret), a_proof())._replace(assertion=assertion)
    assert isinstance(store.perform(with_another), Quota)
    with_both = with_proof(counted(secret), a_proof())._replace(assertion=assertion)
    assert isinstance(store.perform(with_both), UsedBefore)


def test_in_a_batch_each_login_has_its_own_result() -> None:
    one, other, with_secret, refused, assertion = clients(5)
    used, used_assertion = a_proof(), an_assertion()
    store.perform(used)
    store.perform(used_assertion)
    calls = [
        with_proof(counted(one), a_proof()),
        with_proof(counted(other), used),
        counted(with_secret),
        with_proof(counted(refused), a_proof())._replace(epoch=7),
        with_proof(counted(assertion), a_proof())._replace(assertion=used_assertion),
        with_proof(counted(other), a_proof())._replace(assertion=an_assertion()),
    ]
    found = with_store(lambda store: results(store, calls))
    right = [Quota, ProofUsedBefore, Quota, type(None), UsedBefore, Quota]
    assert [type(result) for result in found] == right
    stored = set(LoginEvent.objects.values_list("client_id", flat=True))
    assert stored == {row.system_user.client_id for row in (one, with_secret, other)}


def test_of_many_nodes_at_the_same_moment_one_is_the_first() -> None:
    secrets = clients(3)

    async def on_four_nodes(_one: AsyncStore) -> list[list[Any]]:
        async with AsyncExitStack() as opened:
            nodes = [await opened.enter_async_context(opened_store()) for _ in range(4)]
            found = []
            for _round in range(20):
                calls = [
                    with_proof(login, a_proof())._replace(assertion=an_assertion())
                    for login in logins
                ]
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
            assert all(isinstance(result, Quota | ProofUsedBefore | None) for result in of_client)
    assert LoginEvent.objects.count() == UsedProof.objects.count() == 60
    assert UsedAssertion.objects.count() == 60


def test_a_use_without_a_login_is_stored_once() -> None:
    uses = [a_proof(), a_proof()]
    found = with_store(lambda store: results(store, [uses[0], uses[1], uses[0]]))
    assert found == [True, True, False]
    assert store.perform(uses[1]) is False
