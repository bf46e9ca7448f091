"""Staff who do the same at the same moment: one succeeds, no rule is broken (contract 3 and 4)."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from django.db.models import Model

from identity.staff.accounts.changes.accounts import change_role, create_account, set_account_active
from identity.staff.accounts.roles import ACCOUNT_MANAGER
from identity.staff.models import StaffAccount
from taxpayers import services
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, Credential, SystemUser
from taxpayers.services import Author, ServiceError
from tests.support import make
from tests.support.accounts import new_staff
from tests.support.at_once import at_once
from tests.support.factories import VIEW

pytestmark = pytest.mark.django_db(transaction=True)

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BY: dict[str, Any] = {"by": Author("alice"), "at": AT}
WHY: dict[str, Any] = {**BY, "reason": "a test"}
STAFF = 6


def refusals(outcomes: list[object]) -> list[str]:
    return [str(outcome) for outcome in outcomes if isinstance(outcome, ServiceError)]


def test_of_many_new_secrets_two_are_issued_and_the_others_refused() -> None:
    issue = partial(services.issue_secret, system_user=make.system_user(), **WHY)
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
        services.register_intermediary, taxpayer=make.taxpayer()
    ),
    "grant_permission": lambda: partial(
        services.grant_permission,
        taxpayer=make.taxpayer(),
        intermediary=make.intermediary(),
        codes=[VIEW],
    ),
    "block_system_user": lambda: partial(
        services.block_system_user, system_user=make.system_user(), reason="leaked"
    ),
}


@pytest.mark.parametrize("name", ONCE)
def test_what_several_do_at_once_is_done_and_recorded_once(name: str) -> None:
    outcomes = at_once(*[partial(ONCE[name](), **BY)] * STAFF)
    assert not refusals(outcomes)
    assert len({row.pk for row in outcomes if isinstance(row, Model)}) == 1
    assert Change.objects.get().action == name


def test_one_system_user_of_a_name_is_registered() -> None:
    register = partial(services.register_system_user, taxpayer=make.taxpayer(), name="ERP", **WHY)
    assert len(refusals(at_once(*[register] * STAFF))) == STAFF - 1
    assert (SystemUser.objects.count(), Change.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    "change",
    [partial(set_account_active, is_active=False), partial(change_role, role="viewer")],
    ids=["deactivate", "demote"],
)
def test_two_managers_who_remove_each_other_leave_one(change: Any) -> None:
    one, two = (new_staff(ACCOUNT_MANAGER, name, password=None) for name in ("one", "two"))
    outcomes = at_once(
        partial(change, account=one, **WHY | {"by": Author("two")}),
        partial(change, account=two, **WHY | {"by": Author("one")}),
    )
    assert len(refusals(outcomes)) == 1
    assert StaffAccount.objects.filter(groups__name=ACCOUNT_MANAGER, is_active=True).count() == 1


def test_one_of_two_accounts_with_one_user_name_is_refused() -> None:
    create = partial(create_account, username="badrul", name="Badrul", role="viewer", **WHY)
    (refusal,) = refusals(at_once(create, create))
    assert "already an account with the user name badrul" in refusal
    assert StaffAccount.objects.count() == 1
