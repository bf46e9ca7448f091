"""A form that is sent after the session has ended is not lost, and not carried out either."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from taxpayers.models import SystemUser, Taxpayer
from tests.signin.steps import SIGN_IN, aged, give_code, give_password, html_of
from tests.support import make
from tests.support.accounts import new_staff, signed_in, totp_code, with_totp
from tests.support.staff import errors_of, list_url, opened, task_url, text_of

pytestmark = pytest.mark.django_db

REGISTER = "/admin/taxpayers/taxpayer/register_taxpayer/"
ENTERED = {"identifier": "C2581234010", "name": "Kedai Runcit"}
IDLE = "Your session has ended, because it was not used for 30 minutes."
COMES_BACK = "After you sign in, the form shows what you entered."
RESTORED = "Nothing was saved, because your session had ended."


@pytest.fixture
def registrar() -> User:
    return with_totp(new_staff("registrar", "nurul"))


def idle(client: Client) -> Client:
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    return client


def sign_in(client: Client, user: User) -> None:
    assert give_password(client, user.username).status_code == 302
    assert give_code(client, totp_code()).status_code == 302


def sent_too_late(client: Client, url: str = REGISTER, **entered: Any) -> Any:
    return idle(client).post(url, entered or ENTERED)


def test_what_was_entered_comes_back_after_the_sign_in(registrar: User) -> None:
    client = signed_in(registrar)
    answer = sent_too_late(client, f"{REGISTER}?a=b%2Fc")
    page = client.get(answer.headers["Location"], follow=True)
    assert f"{IDLE} Nothing was saved. {COMES_BACK}" in html_of(page)
    target = page.context["redirect_field_value"]
    assert target == f"{REGISTER}?a=b%2Fc"
    sign_in(client, registrar)
    other_form = client.get("/admin/taxpayers/permissioncode/set_permission_code/")
    assert RESTORED not in text_of(other_form)
    form = client.get(target)
    assert RESTORED in text_of(form)
    shown = {field.html_name: field.value() for field in form.context["form"]}
    assert ENTERED.items() <= shown.items()
    assert not Taxpayer.objects.exists()
    client.post(REGISTER, ENTERED)
    assert Taxpayer.objects.get().name == "Kedai Runcit"
    assert RESTORED not in text_of(client.get(target))
    opened_only = html_of(idle(client).get("/admin/", follow=True))
    assert IDLE in opened_only
    assert "Nothing was saved" not in opened_only


def test_only_the_same_account_gets_it_back(registrar: User) -> None:
    client, url = signed_in(registrar), "/admin/taxpayers/taxpayer/import_registry/"
    sent_too_late(client, url, file=SimpleUploadedFile("a.csv", b"tin,name\nC2581234010,A"))
    other = with_totp(new_staff("registrar", "zul"))
    sign_in(client, other)
    assert RESTORED not in text_of(client.get(url))
    again = Client()
    sign_in(again, registrar)
    assert "Choose the file again." in text_of(again.get(url))


def test_an_account_that_may_no_longer_sign_in_stores_nothing(registrar: User) -> None:
    client = signed_in(registrar)
    User.objects.update(is_active=False)
    page = html_of(client.post(REGISTER, ENTERED, follow=True))
    assert "Nothing was saved. Sign in and enter it again." in page
    assert IDLE not in page


def test_who_was_not_signed_in_stores_nothing() -> None:
    page = html_of(Client().post(REGISTER, ENTERED, follow=True))
    assert "Nothing was saved. Sign in and enter it again." in page
    client = Client()
    client.cookies["sessionid"] = "a" * 32
    client.post(REGISTER, ENTERED)
    Session.objects.create(session_key="b" * 32, session_data="x", expire_date=timezone.now())
    client.cookies["sessionid"] = "b" * 32
    assert client.post(REGISTER, ENTERED).status_code == 302
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM staff_cache")
        assert cursor.fetchone() == (0,)


def test_passwords_and_secrets_are_not_stored(officer: User) -> None:
    url = task_url(make.system_user(), "block_system_user")
    secret = "cs_test_6GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0"
    client = signed_in(officer)
    sent_too_late(
        client, url, reason=f"leaked: {secret}", password="x", keys="z", csrfmiddlewaretoken="y"
    )
    sign_in(client, officer)
    stored = client.session["unsaved_entries"]["values"]
    assert stored.keys() == {"reason"}
    assert secret not in str(stored)
    assert "leaked" in str(stored)
    sent_too_late(client, url, reason="x" * 100_001)
    assert "Sign in and enter it again." in html_of(client.get(SIGN_IN))


def test_an_edit_conflict_in_the_meantime_is_found(officer: User) -> None:
    row = make.system_user(name="Before")
    client, url = signed_in(officer), task_url(row, "change_system_user")
    form = {"name": "Mine", "scopes": ["InvoicingAPI"], "logins_per_minute": 12, "reason": "Ticket"}
    sent_too_late(client, url, **opened(client, url) | form)
    SystemUser.objects.update(name="Theirs")
    sign_in(client, officer)
    page = client.get(url)
    assert "Name: Theirs" in errors_of(page)
    assert page.context["form"]["name"].value() == "Mine"


def test_a_task_for_selected_records_is_not_stored(officer: User) -> None:
    client = signed_in(officer)
    sent = {"action": "bulk_block_system_user", "_selected_action": ["1"], "confirmed": "1"}
    sent_too_late(client, list_url(SystemUser), **sent)
    assert "Nothing was saved. Sign in and enter it again." in html_of(client.get(SIGN_IN))


def with_csrf_check(user: User, **headers: str) -> Client:
    return signed_in(user, enforce_csrf_checks=True, headers=headers)


def test_a_form_from_before_another_sign_in_is_shown_again_and_not_carried_out(
    registrar: User,
) -> None:
    client = with_csrf_check(registrar, origin="http://testserver")
    answer = client.post(REGISTER, ENTERED)
    assert (answer.status_code, answer.headers["Location"]) == (303, REGISTER)
    page = client.get(REGISTER)
    assert RESTORED in text_of(page)
    assert page.context["form"]["name"].value() == "Kedai Runcit"
    assert not Taxpayer.objects.exists()


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", ""])
def test_another_site_cannot_fill_in_a_form(registrar: User, origin: str) -> None:
    client = with_csrf_check(registrar, **({"origin": origin} if origin else {}))
    assert client.post(REGISTER, ENTERED).status_code == 403
    assert "unsaved_entries" not in client.session


def test_a_form_knows_how_long_its_session_lasts(registrar: User, settings: Settings) -> None:
    client = signed_in(registrar)
    assert 'data-session-seconds="1' in html_of(client.get(REGISTER))
    aged(client, seen_at=59, signed_in_at=9 * 3600 + 59 * 60)
    page = html_of(client.get(REGISTER))
    assert any(f'data-session-seconds="{left}"' in page for left in range(50, 61))


def test_staying_signed_in_restarts_the_idle_time(registrar: User) -> None:
    client = aged(signed_in(registrar), seen_at=30)
    before = Session.objects.get().expire_date
    Session.objects.update(expire_date=before - timedelta(minutes=28))
    assert client.get(f"{SIGN_IN}stay/").json()["seconds"] >= 1795
    assert Session.objects.get().expire_date >= before
    assert Client().get(f"{SIGN_IN}stay/").json() == {"seconds": 0}
    assert client.post(f"{SIGN_IN}stay/").status_code == 405
