"""The first token of an index: the process has reserved it, its row is stored with the login."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from taxpayers.models import Credential, EndedStatusIndex, RateLimitCounter, StatusIndex
from tests.introspection.api import token_of
from tests.lanes.calls import clients, counted, is_stored, results, with_store
from tests.support.erp import new_erp
from tests.support.queries import statements_sent
from tokens.calls import (
    AssertionUse,
    CountedLogin,
    ProofUse,
    ProofUsedBefore,
    TakenIndex,
    TakeStatusIndex,
    UsedBefore,
)
from tokens.models import LoginEvent, UsedAssertion, UsedProof
from tokens.operations.node import this_node
from tokens.rate_limits.quota import Quota
from tokens.status_lists.format import REUSED_AFTER
from tokens.store import django_store as store

# On SQLite a statement is no round trip, and nothing is reserved.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

CHECK_AT = datetime(2030, 1, 1, tzinfo=UTC)
INDEX, VERSION = 7_000, 99


def take(secret: Credential, reserve: int = 0, **changes: Any) -> TakeStatusIndex:
    user = secret.system_user
    epoch = RateLimitCounter.objects.get(pk=user.pk).epoch
    key = (user.pk, secret.pk, user.taxpayer.tin, "", "")
    call = TakeStatusIndex(*key, ("InvoicingAPI",), ("documents:view",), epoch, CHECK_AT, reserve)
    return call._replace(**changes)


def first_login(secret: Credential, index: int = INDEX, limit: int = 0) -> CountedLogin:
    return counted(secret, limit)._replace(
        status_index=index, status_version=VERSION, new_index=take(secret)
    )


def test_the_row_is_stored_with_the_login() -> None:
    (secret,) = clients(1)
    assert is_stored(first_login(secret))
    row = StatusIndex.objects.get()
    assert (row.index, row.version, row.check_at) == (INDEX, VERSION, CHECK_AT)
    assert (row.system_user_id, row.secret_id) == (secret.system_user_id, secret.pk)
    assert (row.tin, row.rob, row.actor) == (secret.system_user.taxpayer.tin, "", "")
    assert (row.scopes, row.permissions) == ({"InvoicingAPI": 1}, {"documents:view": 1})
    # The next login confirms it as any other.
    later = counted(secret)._replace(status_index=INDEX, status_version=VERSION)
    assert is_stored(later)
    assert not is_stored(later._replace(status_version=VERSION + 1))


def test_without_the_login_there_is_no_row() -> None:
    (secret,) = clients(1)
    assert not is_stored(first_login(secret)._replace(epoch=7))
    assert is_stored(counted(secret, limit=1))
    assert not is_stored(first_login(secret, limit=1))
    assert not StatusIndex.objects.exists()
    assert LoginEvent.objects.count() == 1


def test_without_its_row_there_is_no_login() -> None:
    one, other = clients(2)
    assert is_stored(first_login(one))
    assert not is_stored(first_login(one, INDEX + 1))  # its tokens have an index
    assert not is_stored(first_login(other))  # another client has this one
    EndedStatusIndex.objects.create(index=INDEX + 2, ended_at=datetime.now(UTC))
    assert not is_stored(first_login(other, INDEX + 2))  # its bit is set
    assert StatusIndex.objects.count() == LoginEvent.objects.count() == 1
    assert is_stored(first_login(other, INDEX + 3))


def test_in_a_batch_each_login_has_its_own_result() -> None:
    one, other, known, late = clients(4)
    assert is_stored(first_login(known, INDEX + 9))
    calls = [
        first_login(one),
        first_login(other, INDEX),  # the same number, as after a backup was restored
        counted(known)._replace(status_index=INDEX + 9, status_version=VERSION),
        first_login(late, INDEX + 2)._replace(epoch=7),
        counted(known)._replace(status_index=INDEX + 9, status_version=VERSION + 1),
    ]
    found = with_store(lambda store: results(store, calls))
    assert sorted(type(result).__name__ for result in found[:2]) == ["NoneType", "Quota"]
    assert [type(result) for result in found[2:]] == [Quota, type(None), type(None)]
    assert StatusIndex.objects.count() == 2


def test_a_login_whose_index_is_not_free_is_repeated_with_its_proof_and_assertion() -> None:
    one, other = clients(2)
    soon = datetime.now(UTC) + timedelta(minutes=1)
    proved: dict[str, Any] = {
        "assertion": AssertionUse(uuid4(), soon),
        "proof": ProofUse(uuid4(), soon),
    }
    assert is_stored(first_login(one))
    assert store.perform(first_login(other)._replace(**proved)) is None
    assert not UsedAssertion.objects.exists()
    assert not UsedProof.objects.exists()
    assert is_stored(first_login(other, INDEX + 1)._replace(**proved))
    again = counted(other)._replace(**proved)
    assert isinstance(store.perform(again), ProofUsedBefore)
    assert isinstance(store.perform(again._replace(proof=None)), UsedBefore)


@pytest.mark.parametrize("refused", [{"scope": "Unknown"}, {}])
def test_a_client_that_was_refused_before_keeps_the_index_of_its_first_token(
    refused: dict[str, str],
) -> None:
    """Its node remembers it already, but no index."""
    token_of(new_erp())
    erp = new_erp()
    if refused:
        assert erp.login(**refused).status_code == 400
    assert erp.login().status_code == 200
    for _ in range(2):
        with statements_sent() as words:
            assert erp.login().status_code == 200
        assert words == ["WITH"]
    assert StatusIndex.objects.filter(system_user_id=erp.system_user.pk).count() == 1


def test_reserved_ones_are_given_to_no_other_process() -> None:
    one, other = clients(2)
    first: TakenIndex = store.perform(take(one, reserve=3))
    second: TakenIndex = store.perform(take(other))
    assert first.status is not None
    assert second.status is not None
    given = [first.status.index, *first.reserved, second.status.index]
    assert (len(given), len(set(given)), len(first.reserved)) == (5, 5, 3)
    assert second.reserved == ()


def test_those_whose_tokens_have_expired_are_reserved_first() -> None:
    (secret,) = clients(1)
    now = datetime.now(UTC)
    for number, age in enumerate((REUSED_AFTER * 2, REUSED_AFTER * 2, REUSED_AFTER / 2)):
        EndedStatusIndex.objects.create(index=5_000 + number, ended_at=now - age)
    taken: TakenIndex = store.perform(take(secret, reserve=2))
    assert taken.status is not None
    assert {5_000, 5_001} < {taken.status.index, *taken.reserved}
    assert EndedStatusIndex.objects.get().index == 5_002


def test_a_login_that_meets_a_restored_backup_takes_another_index() -> None:
    """What this process has reserved was given to another client since, or has ended."""
    (secret,) = clients(1)
    this_node().reserved_indexes.add(TakenIndex(None, (INDEX, INDEX + 1)))
    assert is_stored(first_login(secret, INDEX))
    EndedStatusIndex.objects.create(index=INDEX + 1, ended_at=datetime.now(UTC))
    for _ in range(2):
        assert token_of(new_erp())
    assert StatusIndex.objects.count() == 3
