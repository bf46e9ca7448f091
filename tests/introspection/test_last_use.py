"""When a secret of a protected API was last used: stored once a minute at most, and shown."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from tests.endpoint.test_event_loop import answers_to
from tests.introspection.api import Api, new_api
from tests.introspection.test_at_once import asked
from tests.support.answers import body_of
from tests.support.factories import ProtectedApiSecretFactory
from tokens.calls import ApiSecretUse
from tokens.models import ProtectedApiSecret
from tokens.operations.node import this_node
from tokens.store import django_store as store
from tokens.store.api_secret_use import UsesOfThisMinute, minute_of

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has met no secret yet."""
    monkeypatch.setattr(this_node().api_secret_uses, "_minutes", {})


def last_use(api: Api) -> datetime | None:
    return ProtectedApiSecret.objects.get(protected_api=api.registered).last_used_at


def test_a_process_sends_the_first_use_of_each_minute() -> None:
    uses = UsesOfThisMinute()
    assert uses.is_first(1, NOON)
    assert not uses.is_first(1, NOON + 59 * SECOND)
    assert uses.is_first(2, NOON + 59 * SECOND)
    assert uses.is_first(1, NOON + 60 * SECOND)
    assert not uses.is_first(1, NOON + 61 * SECOND)


def test_the_minute_of_an_introspection_is_stored_with_the_secret_that_asked(api: Api) -> None:
    other = ProtectedApiSecretFactory.create(protected_api=new_api("Archive").registered)
    api.introspect("x", client_secret="cs_test_wrong")
    ProtectedApiSecret.objects.update(revoked_at=NOON)
    assert api.introspect("x").status_code == 401
    assert last_use(api) is None, "a wrong secret and one that has ended are no use"
    ProtectedApiSecret.objects.update(revoked_at=None, created_at=NOON)
    before = minute_of(datetime.now(UTC))
    assert body_of(api.introspect("x")) == {"active": False}
    stored = last_use(api)
    assert stored is not None
    assert before <= stored <= datetime.now(UTC)
    assert stored == minute_of(stored)
    other.refresh_from_db()
    assert other.last_used_at is None


def test_no_use_lies_before_the_secret_was_made(api: Api) -> None:
    made = datetime.now(UTC)
    ProtectedApiSecret.objects.update(created_at=made)
    api.introspect("x")
    stored = last_use(api)
    assert stored is not None
    assert stored >= made


def test_an_introspection_is_answered_also_if_its_use_cannot_be_stored(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    perform = store.perform

    def without_uses(call: Any) -> Any:
        if isinstance(call, ApiSecretUse):
            raise DatabaseError("cannot write")
        return perform(call)

    monkeypatch.setattr(store, "perform", without_uses)
    answer = api.introspect("x")
    assert body_of(answer) == {"active": False}
    assert last_use(api) is None
    (logged,) = (
        line for line in caplog.records if line.getMessage() == "use of a secret not stored"
    )
    assert getattr(logged, "reference") == answer.headers["correlationId"]  # noqa: B009 - an extra


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_locked_row_makes_no_introspection_wait(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    with transaction.atomic():
        ProtectedApiSecret.objects.select_for_update().get(protected_api=api.registered)
        (answer,) = answers_to([asked(api, "x")])
        assert answer.status == 200
        assert last_use(api) is None
    assert "not stored" not in caplog.text  # it was left out, not given up
