"""How staff sign in: password and second factor; a form that was sent too late is not lost."""

import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from pytest_django import Settings

from identity.staff.accounts.adapters import SecondFactors
from taxpayers.models import SystemUser, Taxpayer
from tests.signin.steps import (
    ADMIN,
    SIGN_IN,
    aged,
    give_code,
    give_password,
    html_of,
    is_signed_in,
    sign_in,
)
from tests.support import make
from tests.support.accounts import PASSWORD, TOTP_SECRET, new_staff, signed_in, totp_code, with_totp
from tests.support.staff import errors_of, list_url, opened, task_url, text_of
from tokens.metrics import COUNTED

pytestmark = pytest.mark.django_db

WRONG = "The user name or the password is wrong"


def counted(outcome: str) -> float:
    return COUNTED.get_sample_value("staff_sign_ins_total", {"outcome": outcome}) or 0


def test_password_and_app_code_sign_in(client: Client, officer: User) -> None:
    page = html_of(client.get(reverse("account_login")))
    (field,) = re.findall(r"<input[^>]*autofocus[^>]*>", page)
    assert 'name="login"' in field
    assert "User name" in page
    assert "demo" not in page
    answer = give_password(client, officer.username)
    assert answer.headers["Location"] == reverse("mfa_authenticate")
    assert not is_signed_in(client)
    assert "Incorrect code" in html_of(give_code(client, "000000"))
    assert not is_signed_in(client)
    signed_in_before = counted("signed_in")
    assert give_code(client, totp_code()).headers["Location"] == ADMIN
    assert is_signed_in(client)
    assert counted("signed_in") == signed_in_before + 1
    client.post(reverse("mfa_deactivate_totp"))
    assert client.get(ADMIN).headers["Location"] == reverse("mfa_index")  # another must be set up


@pytest.mark.parametrize("kind", ["app", "recovery"])
def test_a_code_works_once(kind: str, client: Client, officer: User) -> None:
    recovery = RecoveryCodes.activate(officer).generate_codes()[3]
    code = recovery if kind == "recovery" else totp_code()
    for browser_window, is_let_in in ((client, True), (Client(), False)):
        give_password(browser_window, officer.username)
        give_code(browser_window, code)
        assert is_signed_in(browser_window) is is_let_in


def test_a_second_step_that_cannot_be_decrypted_is_a_page_that_says_what_to_do(
    client: Client, officer: User, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [], "another-" * 8
    give_password(client, officer.username)
    answer = give_code(client, totp_code())
    assert answer.status_code == 503
    page = html_of(answer)
    assert "Your second step cannot be read" in page
    assert "SECRET_KEY_FALLBACKS" in page
    assert "an account manager or an operator can reset your second step" in page
    assert not is_signed_in(client)
    assert "a second step cannot be decrypted: check SECRET_KEY_FALLBACKS" in caplog.messages


def test_secrets_of_second_factors_are_encrypted_at_rest(officer: User, settings: Settings) -> None:
    RecoveryCodes.activate(officer)
    stored = {row.type: row.data for row in Authenticator.objects.all()}
    assert SecondFactors().decrypt(stored["totp"]["secret"]) == TOTP_SECRET
    assert TOTP_SECRET not in str(stored)
    assert len(SecondFactors().decrypt(stored["recovery_codes"]["seed"])) == 80
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-" * 8
    assert SecondFactors().decrypt(stored["totp"]["secret"]) == TOTP_SECRET


def test_without_a_second_factor_nothing_is_seen_before_it_is_set_up(client: Client) -> None:
    give_password(client, new_staff("viewer").username)
    for path in (ADMIN, "/admin/taxpayers/systemuser/"):
        refused = client.get(path, follow=True)
        assert refused.redirect_chain[-1][0] == reverse("mfa_index")
        assert "set up a second step" in html_of(refused)
    page = html_of(client.get(reverse("mfa_activate_totp")))
    secret = re.search(r'id="authenticator_secret" value="([A-Z2-7]+)"', page)
    assert secret is not None
    answer = client.post(reverse("mfa_activate_totp"), {"code": totp_code(secret[1])})
    assert answer.headers["Location"] == reverse("mfa_view_recovery_codes")
    pages = [html_of(client.get(reverse("mfa_view_recovery_codes"))) for _ in range(2)]
    assert ['id="recovery-codes"' in page for page in pages] == [True, False]  # shown once
    assert is_signed_in(client)


def test_recovery_codes_are_no_second_factor(client: Client) -> None:
    """They replace one that was lost, and nothing else: a password and a code open no page."""
    user = new_staff("viewer")
    RecoveryCodes.activate(user)
    give_password(client, user.username)
    assert client.get(ADMIN).headers["Location"] == reverse("mfa_index")
    assert signed_in(user).get(ADMIN).headers["Location"] == reverse("mfa_index")


def test_a_session_with_only_a_password_ends_when_a_second_factor_is_added(client: Client) -> None:
    user = new_staff("security officer")
    give_password(client, user.username)  # a thief, say
    with_totp(user)  # the owner, elsewhere
    for path in (ADMIN, reverse("mfa_index"), reverse("mfa_add_webauthn")):
        assert client.get(path).status_code == 302
        assert "_auth_user_id" not in client.session
        give_password(client, user.username)
    assert not is_signed_in(client)


def test_in_the_demo_a_password_is_enough_and_the_page_says_so(
    client: Client, settings: Settings
) -> None:
    settings.SECOND_FACTOR_REQUIRED, settings.IS_EMBEDDED = False, True
    assert "This is the demo" in html_of(client.get(SIGN_IN))
    give_password(client, new_staff().username)
    assert is_signed_in(client)


def test_an_unknown_name_a_wrong_password_and_a_disabled_account_get_the_same_answer(
    officer: User,
) -> None:
    varies = r'nonce="[^"]*"|name="csrfmiddlewaretoken" value="\w+"|nobody|security-officer'
    pages = [
        html_of(give_password(Client(), name, "wrong")) for name in ("nobody", officer.username)
    ]
    User.objects.update(is_active=False)
    pages.append(html_of(give_password(Client(), officer.username)))
    (answer,) = {re.sub(varies, "", page) for page in pages}
    assert WRONG in answer


def test_an_account_that_is_not_staff_cannot_sign_in(client: Client) -> None:
    User.objects.create_user("visitor", password=PASSWORD)
    assert give_password(client, "visitor").headers["Location"] == reverse("account_inactive")
    assert not is_signed_in(client)


@pytest.mark.parametrize("name", ["account_signup", "account_reset_password", "account_email"])
def test_there_is_no_self_registration_and_no_reset_by_email(name: str) -> None:
    with pytest.raises(NoReverseMatch):
        reverse(name)


@pytest.mark.parametrize(
    ("wanted", "led_to"),
    [
        ("/admin/taxpayers/systemuser/", "/signin/?next=/admin/taxpayers/systemuser/"),
        ("https://elsewhere.example/", "/signin/?next=/admin/"),
    ],
)
def test_the_admin_redirects_to_the_sign_in_and_back(
    client: Client, wanted: str, led_to: str
) -> None:
    assert client.get("/admin/login/", {"next": wanted}).headers["Location"] == led_to
    client.post("/admin/login/", {"username": new_staff().username, "password": PASSWORD})
    assert "_auth_user_id" not in client.session  # it accepts no password


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


def test_who_was_not_signed_in_stores_nothing(registrar: User) -> None:
    """Nor an account that may no longer sign in."""
    no_longer = signed_in(registrar)
    User.objects.update(is_active=False)
    for client in (Client(), no_longer):
        page = html_of(client.post(REGISTER, ENTERED, follow=True))
        assert "Nothing was saved. Sign in and enter it again." in page
        assert IDLE not in page
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
    for length, is_stored in ((100_000, True), (100_001, False)):
        sent_too_late(client, url, reason="x" * length)
        assert ("Sign in and enter it again." not in html_of(client.get(SIGN_IN))) == is_stored


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
