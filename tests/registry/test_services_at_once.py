"""Staff who do the same at the same moment: one wins, nobody breaks a rule (contract 3 and 4)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from taxpayers.identifiers import TaxpayerId
from taxpayers.models import (
    Change,
    Credential,
    GrantedPermission,
    Intermediary,
    SystemUser,
    Taxpayer,
)
from taxpayers.services import (
    Author,
    ServiceError,
    block_system_user,
    grant_permission,
    issue_secret,
    register_intermediary,
    register_system_user,
    register_taxpayer,
)
from tests.support.factories import VIEW, IntermediaryFactory, SystemUserFactory, TaxpayerFactory

pytestmark = pytest.mark.django_db(transaction=True)

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BY: dict[str, Any] = {"by": Author("alice"), "at": AT}
STAFF = 6


def at_once(act: Callable[[], object]) -> list[object]:
    """What each of STAFF threads got: a result, or the ServiceError that it was told."""
    barrier = Barrier(STAFF)

    def one() -> object:
        try:
            connection.ensure_connection()  # so that the race is about the rows
            barrier.wait()
            return act()
        except ServiceError as fault:
            return fault
        finally:
            connection.close()

    with ThreadPoolExecutor(STAFF) as pool:
        futures = [pool.submit(one) for _ in range(STAFF)]
        return [future.result() for future in futures]


def refusals(outcomes: list[object]) -> list[str]:
    return [str(outcome) for outcome in outcomes if isinstance(outcome, ServiceError)]


def test_of_many_new_secrets_two_are_issued_and_the_others_refused() -> None:
    owner = SystemUserFactory.create()
    message = refusals(at_once(lambda: issue_secret(system_user=owner, **BY)))
    assert len(message) == STAFF - 2
    assert all("has two live secrets" in text for text in message)
    assert Credential.objects.filter(slot__isnull=False).count() == 2
    assert Change.objects.count() == 2


def test_a_taxpayer_is_registered_once() -> None:
    identifier = TaxpayerId("C1234567890")
    outcomes = at_once(lambda: register_taxpayer(taxpayer=identifier, name="Acme", **BY))
    assert not refusals(outcomes)
    assert (Taxpayer.objects.count(), Change.objects.count()) == (1, 1)


def test_an_intermediary_is_registered_once() -> None:
    taxpayer = TaxpayerFactory.create()
    outcomes = at_once(lambda: register_intermediary(taxpayer=taxpayer, **BY))
    assert not refusals(outcomes)
    assert (Intermediary.objects.count(), Change.objects.count()) == (1, 1)


def test_the_same_permission_is_granted_once() -> None:
    taxpayer, intermediary = TaxpayerFactory.create(), IntermediaryFactory.create()
    outcomes = at_once(
        lambda: grant_permission(taxpayer=taxpayer, intermediary=intermediary, codes=[VIEW], **BY)
    )
    assert not refusals(outcomes)
    assert (GrantedPermission.objects.count(), Change.objects.count()) == (1, 1)


def test_one_system_user_of_a_name_is_registered() -> None:
    taxpayer = TaxpayerFactory.create()
    outcomes = at_once(lambda: register_system_user(taxpayer=taxpayer, name="ERP", **BY))
    assert len(refusals(outcomes)) == STAFF - 1
    assert (SystemUser.objects.count(), Change.objects.count()) == (1, 1)


def test_a_block_is_recorded_once() -> None:
    owner = SystemUserFactory.create()
    outcomes = at_once(lambda: block_system_user(system_user=owner, reason="leaked", **BY))
    assert not refusals(outcomes)
    assert Change.objects.count() == 1
