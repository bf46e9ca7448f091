"""Staff accounts on the pages: the list, the page of one, and its tasks."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from identity.staff.accounts.roles import ACCOUNT_MANAGER, ROLES
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.models import Change
from tests.support.accounts import new_staff, with_totp
from tests.support.staff import (
    ADDRESS,
    csv_rows_of,
    errors_of,
    list_url,
    opened,
    page_url,
    staff_client,
    task_url,
    text_of,
)

pytestmark = pytest.mark.django_db
NEW = {"name": "Chong Wei Ming", "username": "chong", "role": "viewer", "reason": "Ticket 4711"}


@pytest.fixture
def manager() -> Client:
    return staff_client(ACCOUNT_MANAGER, "mariam")


def test_an_account_is_created_with_one_role_and_a_first_password_shown_once(
    manager: Client,
) -> None:
    url = task_url(StaffAccount, "create_account")
    text = text_of(manager.get(url))
    assert all(f"{role.title} {role.duties}" in text for role in ROLES.values())
    assert "Superuser" not in text
    response = manager.post(url, NEW)
    password = response.context["issued"].password
    assert password in text_of(response)
    created = StaffAccount.objects.get(username="chong")
    assert (created.name, created.role, created.is_staff) == ("Chong Wei Ming", "viewer", True)
    assert created.check_password(password)
    assert password not in text_of(manager.get(page_url(created)))
    again = manager.post(url, NEW)  # a reload of the page
    assert "already an account with the user name chong" in errors_of(again)
    row = Change.objects.get()
    assert (row.action, row.by, row.address) == ("create_account", "mariam", ADDRESS)


def send(client: Client, row: StaffAccount, task: str, **values: Any) -> Any:
    url = task_url(row, task)
    return client.post(url, opened(client, url) | {"reason": "Ticket 4711"} | values)


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
    manager: Client, task: str, values: dict[str, str], says: str
) -> None:
    row = with_totp(new_staff("viewer", "badrul"))
    response = send(manager, row, task, **values)
    page = text_of(manager.get(response.headers["Location"]))
    assert says in page
    assert "by mariam" in page
    assert "Reason: Ticket 4711" in page
    assert Change.objects.get().action == task


def test_a_new_first_password_is_set_once_however_often_the_form_is_sent(manager: Client) -> None:
    row = new_staff("viewer", "badrul")
    url = task_url(row, "set_first_password")
    form = opened(manager, url) | {"reason": "Forgotten"}
    password = manager.post(url, form).context["issued"].password
    again = manager.post(url, form)
    assert "This form was already submitted" in errors_of(again)
    row.refresh_from_db()
    assert row.check_password(password)


def test_ones_own_account_has_no_buttons_and_says_why(manager: Client) -> None:
    own = StaffAccount.objects.get(username="mariam")
    page = manager.get(page_url(own))
    assert page.context["buttons"] == []
    assert "This is your own account." in text_of(page)
    response = manager.get(task_url(own, "deactivate_account"), follow=True)
    assert "This is your own account." in text_of(response)
    assert "This is your own account." in text_of(
        manager.post(task_url(own, "change_role"), {"role": "viewer"}, follow=True)
    )
    assert not Change.objects.exists()


def test_the_page_shows_role_second_step_and_last_sign_in(
    manager: Client, settings: Settings
) -> None:
    settings.SECOND_FACTOR_REQUIRED = True
    row = new_staff("registrar", "badrul")
    for days, sentence in ((1, "has not chosen a password"), (-1, "expired")):
        expires = timezone.now() + timedelta(days=days)
        FirstPassword.objects.all().delete()
        FirstPassword.objects.create(user_id=row.pk, expires_at=expires)
        assert sentence in text_of(manager.get(page_url(row)))
    text = text_of(manager.get(page_url(row)))
    assert "First password" in text
    assert f"Registrar {ROLES['registrar'].duties}" in text
    assert "None yet. It is set up at the next sign-in." in text
    assert "Last sign-in Never" in text
    with_totp(row)
    assert "Second step Authenticator app" in text_of(manager.get(page_url(row)))
    settings.SECOND_FACTOR_REQUIRED = False
    other = new_staff("registrar", "zul")
    assert "It is set up at the next" not in text_of(manager.get(page_url(other)))


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
def test_the_list_is_searched_and_filtered(manager: Client, query: str, found: list[str]) -> None:
    new_staff("viewer", "badrul"), new_staff("registrar", "zul")
    chong = new_staff("auditor", "chong")
    User.objects.filter(pk=chong.pk).update(first_name="Chong Wei Ming")
    User.objects.filter(username="zul").update(is_active=False)
    FirstPassword.objects.create(user_id=chong.pk, expires_at=timezone.now())
    listed = manager.get(f"{list_url(StaffAccount)}{query}").context["cl"].result_list
    assert [row.username for row in listed] == found


EXPORT = f"{list_url(StaffAccount)}export.csv"


def test_an_auditor_exports_every_account_with_its_role_and_second_step(auditor: Client) -> None:
    with_totp(new_staff("registrar", "badrul", password=None))
    new_staff("viewer", "chong", password=None)
    User.objects.filter(username="chong").update(is_active=False)
    assert "Export CSV" in text_of(auditor.get(list_url(StaffAccount)))
    header, *rows = csv_rows_of(auditor.get(EXPORT))
    exported = {row[header.index("user_name")]: dict(zip(header, row, strict=True)) for row in rows}
    assert set(exported) == {"farid", "badrul", "chong"}
    assert exported["badrul"]["role"] == "registrar"
    assert exported["badrul"]["second_step"] == "totp"
    assert [exported[name]["active"] for name in ("badrul", "chong")] == ["yes", "no"]
    found = csv_rows_of(auditor.get(f"{EXPORT}?role=registrar"))
    assert [row[header.index("user_name")] for row in found[1:]] == ["badrul"]
    assert [(c.by, c.object_type) for c in Change.objects.all()] == [("farid", "staffaccount")] * 4
