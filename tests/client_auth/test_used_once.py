"""An assertion is used once: on all nodes, in a batch, at the same moment (both databases)."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from uuid_utils.compat import uuid7

from taxpayers.models import RateLimitCounter
from tests.lanes.calls import clients, counted, opened_store, results, with_store
from tests.support.command_line import output_of
from tokens.calls import AssertionUse, CountedLogin, UsedBefore
from tokens.models import LoginEvent, UsedAssertion
from tokens.rate_limits.quota import Quota
from tokens.store import django_store as store
from tokens.store.async_store import AsyncStore

pytestmark = pytest.mark.django_db(transaction=True)


def a_use() -> AssertionUse:
    return AssertionUse(uuid4(), datetime.now(UTC) + timedelta(minutes=1))


def with_assertion(login: CountedLogin, use: AssertionUse | None) -> CountedLogin:
    return login._replace(assertion=use)


def test_the_login_and_its_assertion_are_stored_together_or_not_at_all() -> None:
    (secret,) = clients(1)
    outdated = counted(secret)._replace(epoch=7, assertion=a_use())
    assert store.perform(outdated) is None
    over_its_limit = counted(secret, limit=1)
    assert isinstance(store.perform(over_its_limit), Quota)
    assert store.perform(with_assertion(counted(secret, limit=1), a_use())) is None
    assert not UsedAssertion.objects.exists()
    use = a_use()
    assert isinstance(store.perform(with_assertion(counted(secret), use)), Quota)
    row = UsedAssertion.objects.get()
    assert (row.pk, row.expires_at) == (use.id, use.expires_at)


def test_a_second_use_stores_nothing() -> None:
    (secret,) = clients(1)
    use = a_use()
    assert isinstance(store.perform(with_assertion(counted(secret), use)), Quota)
    assert isinstance(store.perform(with_assertion(counted(secret), use)), UsedBefore)
    assert LoginEvent.objects.count() == 1
    assert RateLimitCounter.objects.get(pk=secret.system_user_id).used == 1


def test_in_a_batch_each_login_has_its_own_result() -> None:
    one, other, with_secret, refused = clients(4)
    used = a_use()
    store.perform(used)
    calls = [
        with_assertion(counted(one), a_use()),
        with_assertion(counted(other), used),
        counted(with_secret),
        with_assertion(counted(refused), a_use())._replace(epoch=7),
        with_assertion(counted(other), a_use()),
    ]
    found = with_store(lambda store: results(store, calls))
    assert [type(result) for result in found] == [Quota, UsedBefore, Quota, type(None), Quota]
    stored = set(LoginEvent.objects.values_list("client_id", flat=True))
    assert stored == {row.system_user.client_id for row in (one, with_secret, other)}
    assert UsedAssertion.objects.count() == 3


def test_twice_in_one_batch_is_once() -> None:
    (secret,) = clients(1)
    use = a_use()
    calls = [with_assertion(counted(secret), use) for _ in range(5)]
    found = with_store(lambda store: results(store, calls))
    assert sorted(type(result).__name__ for result in found) == ["Quota", *["UsedBefore"] * 4]
    assert LoginEvent.objects.count() == 1


def test_of_many_nodes_at_the_same_moment_one_is_the_first() -> None:
    secrets = clients(3)

    async def on_four_nodes(_one: AsyncStore) -> list[list[Any]]:
        async with AsyncExitStack() as opened:
            nodes = [await opened.enter_async_context(opened_store()) for _ in range(4)]
            found = []
            for _round in range(20):
                calls = [with_assertion(login, a_use()) for login in logins]
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
            assert all(isinstance(result, Quota | UsedBefore | None) for result in of_client)
    assert LoginEvent.objects.count() == UsedAssertion.objects.count() == 60


def test_a_use_without_a_login_is_stored_once() -> None:
    uses = [a_use(), a_use()]
    found = with_store(lambda store: results(store, [uses[0], uses[1], uses[0]]))
    assert found == [True, True, False]
    assert store.perform(uses[1]) is False


def test_expired_ones_are_deleted_every_night() -> None:
    now = timezone.now()
    for seconds in (-60, 60):
        UsedAssertion.objects.create(id=uuid4(), expires_at=now + timedelta(seconds=seconds))
    output_of("prune_logins", "--older-than", "400d")
    assert UsedAssertion.objects.get().expires_at > now
