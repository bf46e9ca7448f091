"""Account managers who change each other at the same moment: one of them stays."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from identity.staff.accounts.changes.accounts import change_role, create_account, set_account_active
from identity.staff.accounts.roles import ACCOUNT_MANAGER
from identity.staff.models import StaffAccount
from taxpayers.services import Author, ServiceError
from tests.registry.test_services_at_once import at_once
from tests.support.accounts import new_staff

pytestmark = pytest.mark.django_db(transaction=True)
WHY: dict[str, Any] = {"reason": "Ticket 4711"}


def deactivate(row: StaffAccount, by: str) -> object:
    return set_account_active(account=row, is_active=False, by=Author(by), at=timezone.now(), **WHY)


def demote(row: StaffAccount, by: str) -> object:
    return change_role(account=row, role="viewer", by=Author(by), at=timezone.now(), **WHY)


@pytest.mark.parametrize("change", [deactivate, demote])
def test_two_managers_who_remove_each_other_leave_one(
    change: Callable[[StaffAccount, str], object],
) -> None:
    names = ("first", "second")
    first, second = (
        StaffAccount.objects.get(pk=new_staff(ACCOUNT_MANAGER, name, password=None).pk)
        for name in names
    )
    outcomes = at_once(lambda: change(second, "first"), lambda: change(first, "second"))
    assert sum(isinstance(outcome, ServiceError) for outcome in outcomes) == 1
    managers = StaffAccount.objects.filter(groups__name=ACCOUNT_MANAGER, is_active=True)
    assert managers.count() == 1


def test_one_of_two_accounts_with_one_user_name_is_refused() -> None:
    new_staff(ACCOUNT_MANAGER, "mariam", password=None)

    def create() -> object:
        return create_account(
            username="badrul",
            name="Badrul",
            role="viewer",
            by=Author("mariam"),
            at=timezone.now(),
            **WHY,
        )

    outcomes = at_once(create, create)
    [refusal] = [outcome for outcome in outcomes if isinstance(outcome, ServiceError)]
    assert "already an account with the user name badrul" in str(refusal)
    assert StaffAccount.objects.count() == 2
