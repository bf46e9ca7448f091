"""Changes of staff accounts: each is in the history, and one account manager stays; their pages."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from identity.staff.accounts.changes.accounts import (
    change_role,
    create_account,
    rename_account,
    set_account_active,
)
from identity.staff.accounts.changes.sign_in import reset_second_factor, set_first_password
from identity.staff.accounts.roles import ACCOUNT_MANAGER, ROLES
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.models import Change
from taxpayers.services import Author, ServiceError
from tests.support.accounts import new_staff, signed_in, with_totp
from tests.support.staff import (
    ADDRESS,
    csv_rows_of,
    errors_of,
    list_url,
    opened,
    page_url,
    task_url,
    text_of,
)

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


@dataclass
class Case:
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
    arguments = case.arguments()
    with pytest.raises(ServiceError, match="a reason"):
        case.change(**arguments, reason=" ", by=MANAGER, at=AT)
    case.change(**arguments, reason=WHY, by=MANAGER, at=AT)
    row = Change.objects.get()
    assert (row.action, row.object_type, row.label) == (case.action, "staffaccount", case.label)
    assert row.object_id == str(StaffAccount.objects.get(username="badrul").pk)
    assert (row.by, row.address, row.at, row.reason) == ("mariam", "203.0.113.50", AT, WHY)
    assert (row.before, row.after) == (case.part(0), case.part(1))


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


@pytest.mark.parametrize("case", CASES[1:], ids=lambda case: case.action)
def test_no_person_changes_their_own_account_and_only_a_superuser_a_superuser(case: Case) -> None:
    arguments = case.arguments()
    with pytest.raises(ServiceError, match="This is your own account"):
        case.change(**arguments, reason=WHY, by=Author("badrul"), at=AT)
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


FORM = {"name": "Chong Wei Ming", "username": "chong", "role": "viewer", "reason": "Ticket 4711"}


@pytest.fixture
def client_of_manager(manager: StaffAccount) -> Client:
    return signed_in(with_totp(manager), REMOTE_ADDR=ADDRESS)


def test_an_account_is_created_with_one_role_and_a_first_password_shown_once(
    client_of_manager: Client,
) -> None:
    url = task_url(StaffAccount, "create_account")
    text = text_of(client_of_manager.get(url))
    assert all(f"{role.title} {role.duties}" in text for role in ROLES.values())
    assert "Superuser" not in text
    response = client_of_manager.post(url, FORM)
    password = response.context["issued"].password
    assert password in text_of(response)
    created = StaffAccount.objects.get(username="chong")
    assert (created.name, created.role, created.is_staff) == ("Chong Wei Ming", "viewer", True)
    assert created.check_password(password)
    assert len(password.replace("-", "")) == 16
    for rows in (Change.objects, FirstPassword.objects):
        assert password not in str(list(rows.values()))
    assert password not in text_of(client_of_manager.get(page_url(created)))
    again = client_of_manager.post(url, FORM)  # a reload of the page
    assert "already an account with the user name chong" in errors_of(again)
    row = Change.objects.get()
    assert (row.action, row.by, row.address) == ("create_account", "mariam", ADDRESS)


@pytest.mark.parametrize(
    ("task", "values", "says"),
    [
        ("change_role", {"role": "auditor"}, "Changed the role of the staff account: "),
        ("rename_account", {"name": "Badrul bin Ali"}, "Renamed the staff account: Badrul bin Ali"),
        ("reset_second_factor", {}, "Reset the second step of the staff account: "),
        ("deactivate_account", {}, "Deactivated the staff account: "),
    ],
)
def test_a_task_changes_the_account_and_its_page_shows_the_record(
    client_of_manager: Client, task: str, values: dict[str, str], says: str
) -> None:
    url = task_url(with_totp(new_staff("viewer", "badrul")), task)
    form = opened(client_of_manager, url) | {"reason": "Ticket 4711"} | values
    response = client_of_manager.post(url, form)
    page = text_of(client_of_manager.get(response.headers["Location"]))
    assert says in page
    assert "by mariam" in page
    assert "Reason: Ticket 4711" in page
    assert Change.objects.get().action == task


def test_a_new_first_password_is_set_once_however_often_the_form_is_sent(
    client_of_manager: Client,
) -> None:
    row = new_staff("viewer", "badrul")
    url = task_url(row, "set_first_password")
    form = opened(client_of_manager, url) | {"reason": "Forgotten"}
    password = client_of_manager.post(url, form).context["issued"].password
    again = client_of_manager.post(url, form)
    assert "This form was already submitted" in errors_of(again)
    row.refresh_from_db()
    assert row.check_password(password)


def test_ones_own_account_has_no_buttons_and_says_why(client_of_manager: Client) -> None:
    own = StaffAccount.objects.get(username="mariam")
    page = client_of_manager.get(page_url(own))
    assert page.context["buttons"] == []
    assert "This is your own account." in text_of(page)
    response = client_of_manager.get(task_url(own, "deactivate_account"), follow=True)
    assert "This is your own account." in text_of(response)
    assert "This is your own account." in text_of(
        client_of_manager.post(task_url(own, "change_role"), {"role": "viewer"}, follow=True)
    )
    assert not Change.objects.exists()


def test_the_page_shows_role_second_step_and_last_sign_in(
    client_of_manager: Client, settings: Settings
) -> None:
    settings.SECOND_FACTOR_REQUIRED = True
    row = new_staff("registrar", "badrul")
    for days, sentence in ((1, "has not chosen a password"), (-1, "expired")):
        expires = timezone.now() + timedelta(days=days)
        FirstPassword.objects.all().delete()
        FirstPassword.objects.create(user_id=row.pk, expires_at=expires)
        assert sentence in text_of(client_of_manager.get(page_url(row)))
    text = text_of(client_of_manager.get(page_url(row)))
    assert "First password" in text
    assert f"Registrar {ROLES['registrar'].duties}" in text
    assert "None yet. It is set up at the next sign-in." in text
    assert "Last sign-in Never" in text
    with_totp(row)
    assert "Second step Authenticator app" in text_of(client_of_manager.get(page_url(row)))
    settings.SECOND_FACTOR_REQUIRED = False
    other = new_staff("registrar", "zul")
    assert "It is set up at the next" not in text_of(client_of_manager.get(page_url(other)))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["badrul", "chong", "mariam", "zul"]),
        ("?q=bad", ["badrul"]),
        ("?q=WEI", ["chong"]),
        ("?q=unknown", []),
        ("?role=auditor", ["chong"]),
        ("?role=superuser", []),
        ("?state=active", ["badrul", "chong", "mariam"]),
        ("?state=not_active", ["zul"]),
        ("?state=no_second_step", ["badrul", "chong", "zul"]),
        ("?state=first_password", ["chong"]),
    ],
)
def test_the_list_is_searched_and_filtered(
    client_of_manager: Client, query: str, found: list[str]
) -> None:
    new_staff("viewer", "badrul"), new_staff("registrar", "zul")
    chong = new_staff("auditor", "chong")
    User.objects.filter(pk=chong.pk).update(first_name="Chong Wei Ming")
    User.objects.filter(username="zul").update(is_active=False)
    FirstPassword.objects.create(user_id=chong.pk, expires_at=timezone.now())
    listed = client_of_manager.get(f"{list_url(StaffAccount)}{query}").context["cl"].result_list
    assert [row.username for row in listed] == found


EXPORT = f"{list_url(StaffAccount)}export.csv"


def test_an_auditor_exports_every_account_with_its_role_and_second_step(auditor: Client) -> None:
    with_totp(new_staff("registrar", "badrul", password=None))
    new_staff("viewer", "chong", password=None)
    User.objects.filter(username="chong").update(is_active=False)
    assert "Export CSV" in text_of(auditor.get(list_url(StaffAccount)))
    header, *rows = csv_rows_of(auditor.get(EXPORT))
    exported = {row[header.index("user_name")]: dict(zip(header, row, strict=True)) for row in rows}
    assert set(exported) == {"farid", "badrul", "chong", "mariam"}
    assert exported["badrul"]["role"] == "registrar"
    assert exported["badrul"]["second_step"] == "totp"
    assert [exported[name]["active"] for name in ("badrul", "chong")] == ["yes", "no"]
    found = csv_rows_of(auditor.get(f"{EXPORT}?role=registrar"))
    assert [row[header.index("user_name")] for row in found[1:]] == ["badrul"]
    assert [(c.by, c.object_type) for c in Change.objects.all()] == [("farid", "staffaccount")] * 4
