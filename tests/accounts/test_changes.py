"""Changes of staff accounts: each is in the history, and one account manager stays."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.models import Session
from django.utils import timezone

from identity.staff.accounts.changes.accounts import (
    change_role,
    create_account,
    rename_account,
    set_account_active,
)
from identity.staff.accounts.changes.sign_in import reset_second_factor, set_first_password
from identity.staff.accounts.roles import ACCOUNT_MANAGER
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.models import Change
from taxpayers.services import Author, ServiceError
from tests.support.accounts import new_staff, signed_in, with_totp

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
IN_A_WEEK = "2026-03-08T12:00:00+00:00"
MANAGER, OPERATOR = Author("mariam", "203.0.113.50"), Author("root (manage.py)")
WHY = "Ticket 4711"


def account(role: str = "viewer", username: str = "badrul", name: str = "Badrul") -> StaffAccount:
    row = new_staff(role, username, password=None)
    row.first_name = name
    row.save()
    return row


@pytest.fixture(autouse=True)
def manager() -> StaffAccount:
    return account(ACCOUNT_MANAGER, "mariam", "Mariam")


def deactivate(row: StaffAccount, by: Author = MANAGER) -> object:
    return set_account_active(account=row, is_active=False, reason=WHY, by=by, at=AT)


def demote(row: StaffAccount, by: Author = MANAGER) -> object:
    return change_role(account=row, role="viewer", reason=WHY, by=by, at=AT)


# --- The history ----------------------------------------------------------------------------------


@dataclass
class Case:
    """A change, and the one record that it writes."""

    change: Callable[..., object]
    arguments: Callable[[], dict[str, Any]]
    action: str
    changed: dict[str, tuple[Any, Any]]  # before, after; only added: nothing before
    label: str = "badrul Badrul"

    def part(self, number: int) -> dict[str, Any]:
        values = {name: pair[number] for name, pair in self.changed.items()}
        return {name: value for name, value in values.items() if value is not None}


NEW = {"username": "badrul", "name": "Badrul", "role": "viewer"}
FIRST_PASSWORD = {"first_password_expires_at": (None, IN_A_WEEK)}
CASES = [
    Case(
        *(create_account, lambda: NEW, "create_account"),
        {name: (None, value) for name, value in NEW.items()} | FIRST_PASSWORD,
    ),
    Case(
        *(rename_account, lambda: {"account": account(), "name": "Badrul bin Ali"}),
        "rename_account",
        {"name": ("Badrul", "Badrul bin Ali")},
        "badrul Badrul bin Ali",
    ),
    Case(
        *(change_role, lambda: {"account": account(), "role": "registrar"}),
        *("change_role", {"role": ("viewer", "registrar")}),
    ),
    Case(
        *(set_account_active, lambda: {"account": account(), "is_active": False}),
        *("deactivate_account", {"is_active": (True, False)}),
    ),
    Case(
        *(set_account_active, lambda: {"account": not_active(account()), "is_active": True}),
        *("activate_account", {"is_active": (False, True)}),
    ),
    Case(set_first_password, lambda: {"account": account()}, "set_first_password", FIRST_PASSWORD),
    Case(
        *(reset_second_factor, lambda: {"account": with_totp(account())}),
        *("reset_second_factor", {"second_step": (["authenticator app"], [])}),
    ),
]


def not_active(row: StaffAccount) -> StaffAccount:
    row.is_active = False
    row.save()
    return row


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.action)
def test_every_change_of_an_account_is_recorded_with_who_when_what_and_why(case: Case) -> None:
    case.change(**case.arguments(), reason=WHY, by=MANAGER, at=AT)
    row = Change.objects.get()
    assert (row.action, row.object_type, row.label) == (case.action, "staffaccount", case.label)
    assert row.object_id == str(StaffAccount.objects.get(username="badrul").pk)
    assert (row.by, row.address, row.at, row.reason) == ("mariam", "203.0.113.50", AT, WHY)
    assert (row.before, row.after) == (case.part(0), case.part(1))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.action)
def test_no_account_is_changed_without_a_reason(case: Case) -> None:
    with pytest.raises(ServiceError, match="a reason"):
        case.change(**case.arguments(), reason=" ", by=MANAGER, at=AT)
    assert not Change.objects.exists()


def test_a_first_password_is_nowhere_but_in_the_answer() -> None:
    issued = create_account(
        username="badrul", name="Badrul", role="viewer", reason=WHY, by=MANAGER, at=AT
    )
    assert issued.account.check_password(issued.password)
    assert len(issued.password.replace("-", "")) == 16
    row = Change.objects.get()
    assert issued.password not in str((row.before, row.after, row.reason, row.label))
    assert issued.password not in str(list(FirstPassword.objects.values()))


# --- One account, one role ------------------------------------------------------------------------


def test_a_new_role_replaces_every_other_one() -> None:
    row = account("registrar")
    row.groups.add(Group.objects.get(name="security officer"))
    row.user_permissions.add(Permission.objects.get(codename="rotate_signing_key"))
    demote(row)
    row = StaffAccount.objects.get(pk=row.pk)
    assert row.roles == ["viewer"]
    assert not row.has_perm("tokens.rotate_signing_key")
    change = Change.objects.get()
    assert change.before == {
        "role": "registrar, security officer",
        "extra_permissions": ["rotate_signing_key"],
    }
    assert change.after == {"role": "viewer", "extra_permissions": []}


@pytest.mark.parametrize("role", ["superuser", "registrar, security officer", ""])
def test_what_is_no_role_is_refused(role: str) -> None:
    row = account()
    with pytest.raises(ServiceError, match=r"no role|at least one role"):
        change_role(account=row, role=role, reason=WHY, by=MANAGER, at=AT)
    assert StaffAccount.objects.get(pk=row.pk).roles == ["viewer"]


@pytest.mark.parametrize(
    ("username", "fault"),
    [
        ("badrul", "already an account with the user name badrul"),
        ("Badrul", "already an account with the user name badrul"),
        ("bad rul", "Enter a valid username"),
        ("", "user name"),
        ("x" * 151, "150"),
    ],
)
def test_a_user_name_that_cannot_be_used_is_refused(username: str, fault: str) -> None:
    account()
    with pytest.raises(ServiceError, match=fault):
        create_account(
            username=username, name="Another", role="viewer", reason=WHY, by=MANAGER, at=AT
        )
    assert StaffAccount.objects.count() == 2


# --- Who may change which account -----------------------------------------------------------------


@pytest.mark.parametrize("case", CASES[1:], ids=lambda case: case.action)
def test_no_person_changes_their_own_account(case: Case) -> None:
    with pytest.raises(ServiceError, match="This is your own account"):
        case.change(**case.arguments(), reason=WHY, by=Author("badrul"), at=AT)
    assert not Change.objects.exists()


@pytest.mark.parametrize("case", CASES[1:], ids=lambda case: case.action)
def test_only_a_superuser_changes_a_superuser(case: Case) -> None:
    arguments = case.arguments()
    StaffAccount.objects.filter(username="badrul").update(is_superuser=True)
    with pytest.raises(ServiceError, match="Only a superuser"):
        case.change(**arguments, reason=WHY, by=MANAGER, at=AT)
    assert not Change.objects.exists()
    case.change(**arguments, reason=WHY, by=Author(new_staff().username), at=AT)
    assert Change.objects.exists()


@pytest.mark.parametrize("left", ["is_active", "is_staff"])
@pytest.mark.parametrize("change", [deactivate, demote])
def test_the_last_account_that_manages_accounts_stays(
    manager: StaffAccount, change: Callable[[StaffAccount, Author], object], left: str
) -> None:
    account(ACCOUNT_MANAGER, "left", "Left")  # and cannot sign in
    User.objects.filter(username="left").update(**{left: False})
    with pytest.raises(ServiceError, match="the last active account that can manage accounts"):
        change(manager, OPERATOR)
    assert StaffAccount.objects.get(pk=manager.pk).role == ACCOUNT_MANAGER
    assert not Change.objects.exists()
    boss = new_staff()  # a superuser can do it as well
    change(manager, OPERATOR)
    assert Change.objects.exists()
    change_role(account=boss, role=ACCOUNT_MANAGER, reason=WHY, by=OPERATOR, at=AT)
    assert StaffAccount.objects.get(pk=boss.pk).roles == [ACCOUNT_MANAGER]


# --- Sessions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        deactivate,
        lambda row: set_first_password(account=row, reason=WHY, by=MANAGER, at=timezone.now()),
        lambda row: reset_second_factor(account=row, reason=WHY, by=MANAGER, at=timezone.now()),
    ],
    ids=["deactivate", "first password", "second step"],
)
def test_the_sessions_of_the_account_end_at_once_and_for_good(
    change: Callable[[StaffAccount], object],
) -> None:
    row, other = account(), account("viewer", "chong", "Chong")
    clients = [signed_in(with_totp(user)) for user in (row, other)]
    assert [client.get("/admin/").status_code for client in clients] == [200, 200]
    change(row)
    assert Session.objects.count() == 1  # at once
    StaffAccount.objects.filter(pk=row.pk).update(is_active=True)  # it does not come back
    assert [client.get("/admin/").status_code for client in clients] == [302, 200]


def test_a_reset_removes_every_second_step_and_says_which() -> None:
    row = with_totp(account())
    Authenticator.objects.create(user=row, type=Authenticator.Type.RECOVERY_CODES, data={})
    for removed in (["authenticator app", "recovery codes"], []):
        assert reset_second_factor(account=row, reason=WHY, by=MANAGER, at=AT) == removed
    assert not Authenticator.objects.exists()
    assert Change.objects.count() == 1


def test_another_first_password_replaces_the_one_before() -> None:
    row = account()
    first, second = (
        set_first_password(account=row, reason=WHY, by=MANAGER, at=AT + timedelta(days=days))
        for days in (0, 1)
    )
    row.refresh_from_db()
    assert [row.check_password(one.password) for one in (first, second)] == [False, True]
    assert FirstPassword.objects.get().expires_at == second.expires_at
