"""Staff who do the same at the same moment: one succeeds, no rule is broken (contract 3 and 4)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model

from taxpayers import services
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, Credential, SystemUser
from taxpayers.services import Author, ServiceError
from tests.support.factories import VIEW, IntermediaryFactory, SystemUserFactory, TaxpayerFactory

pytestmark = pytest.mark.django_db(transaction=True)

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BY: dict[str, Any] = {"by": Author("alice"), "at": AT}
WHY: dict[str, Any] = {**BY, "reason": "a test"}
STAFF = 6


def at_once(*acts: Callable[[], object]) -> list[object]:
    """What each got that ran in its own thread: a result, or its ServiceError."""
    barrier = Barrier(len(acts))

    def one(act: Callable[[], object]) -> object:
        try:
            connection.ensure_connection()  # so that the race is about the rows
            barrier.wait()
            return act()
        except ServiceError as fault:
            return fault
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(one, acts))


def refusals(outcomes: list[object]) -> list[str]:
    return [str(outcome) for outcome in outcomes if isinstance(outcome, ServiceError)]


def test_of_many_new_secrets_two_are_issued_and_the_others_refused() -> None:
    owner = SystemUserFactory.create()
    issue = partial(services.issue_secret, system_user=owner, **WHY)
    message = refusals(at_once(*[issue] * STAFF))
    assert len(message) == STAFF - 2
    assert all("has two live secrets" in text for text in message)
    assert Credential.objects.filter(slot__isnull=False).count() == 2
    assert Change.objects.count() == 2


ONCE: dict[str, Callable[[], Callable[[], object]]] = {
    "register_taxpayer": lambda: partial(
        services.register_taxpayer, taxpayer=TaxpayerId("C1234567890"), name="Acme"
    ),
    "register_intermediary": lambda: partial(
        services.register_intermediary, taxpayer=TaxpayerFactory.create()
    ),
    "grant_permission": lambda: partial(
        services.grant_permission,
        taxpayer=TaxpayerFactory.create(),
        intermediary=IntermediaryFactory.create(),
        codes=[VIEW],
    ),
    "block_system_user": lambda: partial(
        services.block_system_user, system_user=SystemUserFactory.create(), reason="leaked"
    ),
}


@pytest.mark.parametrize("name", ONCE)
def test_what_several_do_at_once_is_done_and_recorded_once(name: str) -> None:
    outcomes = at_once(*[partial(ONCE[name](), **BY)] * STAFF)
    assert not refusals(outcomes)
    assert len({row.pk for row in outcomes if isinstance(row, Model)}) == 1
    assert Change.objects.get().action == name


def test_one_system_user_of_a_name_is_registered() -> None:
    taxpayer = TaxpayerFactory.create()
    register = partial(services.register_system_user, taxpayer=taxpayer, name="ERP", **WHY)
    outcomes = at_once(*[register] * STAFF)
    assert len(refusals(outcomes)) == STAFF - 1
    assert (SystemUser.objects.count(), Change.objects.count()) == (1, 1)
