"""How staff sign in: password and second factor, lock-out, timeouts, sign-out."""

import logging
import re
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from pytest_django import Settings

from identity.staff.accounts import encryption
from tests.browser import Browser, browser, staff_pages
from tests.support import servers
from tests.support.accounts import PASSWORD, TOTP_SECRET, new_staff, signed_in, totp_code, with_totp

pytestmark = pytest.mark.django_db
__all__ = ["browser", "staff_pages"]  # the fixtures

ADMIN = "/admin/"
SIGN_IN = "/signin/"


@pytest.fixture(autouse=True)
def production(settings: Settings) -> None:
    """As with a database of one's own, on every database of the tests."""
    settings.SECOND_FACTOR_REQUIRED = True
    settings.IS_EMBEDDED = False
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick


@pytest.fixture
def officer() -> User:
    return with_totp(new_staff("security officer"))


def give_password(client: Client, username: str, password: str = PASSWORD) -> HttpResponse:
    return client.post(SIGN_IN, {"login": username, "password": password})  # type: ignore[return-value]


def give_code(client: Client, code: str) -> HttpResponse:
    return client.post(reverse("mfa_authenticate"), {"code": code})  # type: ignore[return-value]


def is_signed_in(client: Client) -> bool:
    return client.get(ADMIN).status_code == 200


def text_of(answer: Any) -> str:
    return str(answer.content.decode())


# --- Two factors --------------------------------------------------------------------------------


def test_password_and_code_of_the_app_let_in(client: Client, officer: User) -> None:
    answer = give_password(client, officer.username)
    assert answer.headers["Location"] == reverse("mfa_authenticate")
    assert not is_signed_in(client)
    assert give_code(client, totp_code()).headers["Location"] == ADMIN
    assert is_signed_in(client)


def test_a_wrong_code_does_not_let_in(client: Client, officer: User) -> None:
    give_password(client, officer.username)
    assert "Incorrect code" in text_of(give_code(client, "000000"))
    assert not is_signed_in(client)


def test_a_code_is_good_once(client: Client, officer: User) -> None:
    code = totp_code()
    for browser_window, is_let_in in ((client, True), (Client(), False)):
        give_password(browser_window, officer.username)
        give_code(browser_window, code)
        assert is_signed_in(browser_window) is is_let_in


def test_a_recovery_code_lets_in_once(client: Client, officer: User) -> None:
    code = RecoveryCodes.activate(officer).generate_codes()[3]
    for browser_window, is_let_in in ((client, True), (Client(), False)):
        give_password(browser_window, officer.username)
        give_code(browser_window, code)
        assert is_signed_in(browser_window) is is_let_in


def test_secrets_of_second_factors_are_encrypted_at_rest(officer: User) -> None:
    RecoveryCodes.activate(officer)
    stored = {row.type: row.data for row in Authenticator.objects.all()}
    assert encryption.decrypt(stored["totp"]["secret"]) == TOTP_SECRET
    assert TOTP_SECRET not in str(stored)
    assert len(encryption.decrypt(stored["recovery_codes"]["seed"])) == 80


def test_after_a_change_of_the_secret_key_the_former_one_decrypts(
    officer: User, settings: Settings
) -> None:
    stored = Authenticator.objects.get().data["secret"]
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-" * 8
    assert encryption.decrypt(stored) == TOTP_SECRET


@pytest.mark.parametrize("path", [ADMIN, "/admin/taxpayers/systemuser/", "/"])
def test_without_a_second_factor_nothing_is_seen_before_it_is_set_up(
    client: Client, path: str
) -> None:
    give_password(client, new_staff("viewer").username)
    answer = client.get(path, follow=True)
    assert answer.redirect_chain[-1][0] == reverse("mfa_index")
    assert "set up a second step" in text_of(answer)


def test_whoever_sets_up_an_app_goes_on_to_work(client: Client) -> None:
    give_password(client, new_staff("viewer").username)
    page = text_of(client.get(reverse("mfa_activate_totp")))
    secret = re.search(r'id="authenticator_secret" value="([A-Z2-7]+)"', page)
    assert secret is not None
    answer = client.post(reverse("mfa_activate_totp"), {"code": totp_code(secret[1])})
    assert answer.headers["Location"] == reverse("mfa_view_recovery_codes")
    assert "Unused codes" in text_of(client.get(reverse("mfa_view_recovery_codes")))
    assert is_signed_in(client)


def test_recovery_codes_are_shown_once(client: Client, officer: User) -> None:
    RecoveryCodes.activate(officer)
    give_password(client, officer.username)
    give_code(client, totp_code())
    pages = [text_of(client.get(reverse("mfa_view_recovery_codes"))) for _ in range(2)]
    assert ["Unused codes" in page for page in pages] == [True, False]


def test_a_session_of_the_password_alone_does_not_profit_from_a_later_second_factor(
    client: Client,
) -> None:
    user = new_staff("security officer")
    give_password(client, user.username)  # a thief, say
    with_totp(user)  # the owner, elsewhere
    for path in (ADMIN, reverse("mfa_index"), reverse("mfa_add_webauthn")):
        assert client.get(path).status_code == 302
        assert "_auth_user_id" not in client.session
        give_password(client, user.username)
    assert not is_signed_in(client)


def test_whoever_removes_the_last_factor_sets_up_another(officer: User) -> None:
    client = signed_in(officer)
    client.post(reverse("mfa_deactivate_totp"))
    assert not Authenticator.objects.exists()
    assert client.get(ADMIN).headers["Location"] == reverse("mfa_index")


def test_in_the_demo_a_password_is_enough_and_the_page_says_so(
    client: Client, settings: Settings
) -> None:
    settings.SECOND_FACTOR_REQUIRED, settings.IS_EMBEDDED = False, True
    assert "This is the demo" in text_of(client.get(SIGN_IN))
    give_password(client, new_staff().username)
    assert is_signed_in(client)


def test_outside_the_demo_the_page_does_not_speak_of_it(client: Client) -> None:
    assert "demo" not in text_of(client.get(SIGN_IN))


def test_a_lost_second_factor_is_reset_by_a_command(client: Client, officer: User) -> None:
    call_command("reset_second_factor", officer.username)
    give_password(client, officer.username)
    assert client.get(ADMIN).headers["Location"] == reverse("mfa_index")


# --- Who may, and what is told to others --------------------------------------------------------


def test_an_unknown_name_and_a_wrong_password_get_the_same_answer(officer: User) -> None:
    answers = [
        re.sub(
            r'nonce="[^"]*"|name="csrfmiddlewaretoken" value="\w+"|nobody|security-officer',
            "",
            text,
        )
        for text in (
            text_of(give_password(Client(), "nobody", "wrong")),
            text_of(give_password(Client(), officer.username, "wrong")),
        )
    ]
    assert answers[0] == answers[1]
    assert "do not belong together" in answers[0]


def test_an_account_that_was_switched_off_looks_like_a_wrong_password(
    client: Client, officer: User
) -> None:
    User.objects.update(is_active=False)
    assert "do not belong together" in text_of(give_password(client, officer.username))


def test_whoever_is_no_staff_does_not_get_in(client: Client) -> None:
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
def test_the_admin_leads_to_the_sign_in_and_back(client: Client, wanted: str, led_to: str) -> None:
    assert client.get("/admin/login/", {"next": wanted}).headers["Location"] == led_to


def test_the_admins_own_sign_in_takes_no_password(client: Client, officer: User) -> None:
    client.post("/admin/login/", {"username": officer.username, "password": PASSWORD})
    assert "_auth_user_id" not in client.session


# --- Lock-out -----------------------------------------------------------------------------------


@pytest.mark.parametrize("username", ["security-officer", "nobody"])
def test_after_five_failures_even_the_right_password_waits(
    client: Client, officer: User, username: str
) -> None:
    for _ in range(5):
        assert "do not belong together" in text_of(give_password(client, username, "wrong"))
    answer = text_of(give_password(client, username))
    assert "Too many failed attempts. Wait 15 minutes" in answer


def test_the_lock_out_ends_by_itself(
    client: Client, officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(6):
        give_password(client, officer.username, "wrong")
    later = SimpleNamespace(
        time=lambda: time.time() + 15 * 60 + 1, monotonic=time.monotonic, sleep=time.sleep
    )
    monkeypatch.setattr("allauth.core.internal.ratelimit.time", later)
    answer = give_password(client, officer.username)
    assert answer.headers["Location"] == reverse("mfa_authenticate")


def test_one_persons_failures_do_not_lock_out_another(client: Client, officer: User) -> None:
    for _ in range(6):
        give_password(Client(REMOTE_ADDR="203.0.113.9"), "auditor", "wrong")
    assert give_password(client, officer.username).status_code == 302


def test_codes_cannot_be_guessed_either(client: Client, officer: User) -> None:
    give_password(client, officer.username)
    for _ in range(5):
        give_code(client, "000000")
    assert "Too many failed attempts" in text_of(give_code(client, totp_code()))
    assert not is_signed_in(client)


def test_an_address_that_tries_many_names_is_stopped(client: Client, officer: User) -> None:
    for number in range(20):
        give_password(client, f"guess-{number}", "wrong")
    assert "Too many failed attempts" in text_of(give_password(client, officer.username))


def test_failures_are_logged_with_name_and_address(
    client: Client, officer: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "identity.signin"):
        give_password(client, officer.username, "wrong")
        give_password(client, officer.username)
        give_code(client, totp_code())
    said = [(r.message, vars(r)["username"], vars(r)["address"]) for r in caplog.records]
    assert said == [
        ("sign-in failed", officer.username, "127.0.0.1"),
        ("signed in", officer.username, "127.0.0.1"),
    ]
    assert PASSWORD not in caplog.text


# --- Sessions and cookies -----------------------------------------------------------------------


def test_an_idle_session_ends(officer: User, settings: Settings) -> None:
    client = signed_in(officer)
    assert is_signed_in(client)
    left = Session.objects.get().expire_date - timezone.now()
    assert timedelta(minutes=29) < left <= timedelta(minutes=30)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert not is_signed_in(client)


def test_requests_begin_the_idle_time_anew(officer: User) -> None:
    client = signed_in(officer)
    assert is_signed_in(client)
    session = client.session
    session["seen_at"] -= 61
    session.save()
    Session.objects.update(expire_date=timezone.now() + timedelta(seconds=30))
    assert is_signed_in(client)
    assert Session.objects.get().expire_date > timezone.now() + timedelta(minutes=29)


def test_a_long_session_ends_however_busy_it_is(officer: User) -> None:
    client = signed_in(officer)
    assert is_signed_in(client)
    session = client.session
    session["signed_in_at"] -= timedelta(hours=10, seconds=1).total_seconds()
    session.save()
    answer = client.get(ADMIN, follow=True)
    assert answer.redirect_chain[-1][0].startswith(SIGN_IN)
    assert "longest time" in text_of(answer)


def test_sign_out_ends_the_session_but_a_mere_link_does_not(officer: User) -> None:
    client = signed_in(officer)
    client.get(reverse("account_logout"))
    assert is_signed_in(client)
    assert client.post(reverse("account_logout")).headers["Location"] == SIGN_IN
    assert not is_signed_in(client)
    assert not Session.objects.filter(session_data__contains="_auth").exists()


def test_the_session_gets_a_new_key_at_sign_in(client: Client, officer: User) -> None:
    give_password(client, officer.username)
    before = client.cookies["sessionid"].value
    give_code(client, totp_code())
    assert client.cookies["sessionid"].value != before


def test_the_session_cookie_is_for_this_site_and_not_for_scripts(
    client: Client, officer: User
) -> None:
    give_password(client, officer.username)
    give_code(client, totp_code())
    cookie = client.cookies["sessionid"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert cookie["max-age"] == ""  # it ends with the browser
    assert client.cookies["csrftoken"]["samesite"] == "Strict"


@pytest.mark.processes
def test_with_https_cookies_are_secure_and_bound_to_the_host(tmp_path: Any) -> None:
    environment = servers.service_environment(
        tmp_path, 0, AUTH_URL="https://identity.example.org", SESSION_IDLE_MINUTES="5"
    )
    said = servers.manage(environment, "diffsettings", "--all")
    for line in (
        "SESSION_COOKIE_SECURE = True",
        "CSRF_COOKIE_SECURE = True",
        "SESSION_COOKIE_NAME = '__Host-session'",
        "CSRF_COOKIE_NAME = '__Host-csrf'",
        "SESSION_COOKIE_AGE = 300",
        "STAFF_URL = 'https://identity.example.org'",
    ):
        assert line in said


def test_behind_a_trusted_proxy_the_clients_own_address_counts(
    settings: Settings, officer: User, caplog: pytest.LogCaptureFixture
) -> None:
    settings.TRUSTED_PROXIES = ["127.0.0.1"]
    client = Client(headers={"x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https"})
    with caplog.at_level(logging.INFO, "identity.signin"):
        give_password(client, officer.username, "wrong")
    assert [vars(record)["address"] for record in caplog.records] == ["203.0.113.7"]


def test_behind_a_proxy_with_tls_the_pages_do_not_redirect_for_ever(
    settings: Settings,
) -> None:
    settings.TRUSTED_PROXIES, settings.SECURE_SSL_REDIRECT = ["127.0.0.1"], True
    assert Client(headers={"x-forwarded-proto": "https"}).get(SIGN_IN).status_code == 200
    assert Client().get(SIGN_IN).status_code == 301


@pytest.mark.parametrize("path", ["/connect/token", "/.well-known/jwks.json", "/health/live"])
def test_the_public_paths_know_nothing_of_all_this(path: str, officer: User) -> None:
    client = signed_in(officer)
    before = client.session.session_key, dict(client.session)
    answer = client.post(path) if path == "/connect/token" else client.get(path)
    assert not answer.cookies
    assert "Vary" not in answer.headers
    assert (client.session.session_key, dict(client.session)) == before


# --- In a real browser --------------------------------------------------------------------------


def test_a_first_officer_sets_up_a_passkey_and_signs_in_with_it(
    staff_pages: str, browser: Browser
) -> None:
    page = browser.page
    browser.add_passkey_device()
    page.goto(f"{staff_pages}/admin/")
    page.fill("[name=login]", "boss")
    page.fill("[name=password]", PASSWORD)
    page.click("text=Sign in >> nth=1")
    page.wait_for_url("**/signin/second/")
    page.click("text=Add a key")
    page.click("#mfa_webauthn_add")
    page.wait_for_url("**/recovery-codes/")
    codes = page.input_value("#recovery_codes").split()
    assert len(codes) == 10
    page.check("#codes_saved")
    page.click("text=Go on to work")
    page.wait_for_url("**/admin/")

    page.goto(f"{staff_pages}/signin/out/")
    page.click("main button[type=submit]")
    page.wait_for_url("**/signin/")
    page.click("#passkey_login")
    page.wait_for_url("**/admin/")

    # The passkey as the second step of a password, and a recovery code instead of it.
    for second_step in ("passkey", "code"):
        page.goto(f"{staff_pages}/signin/out/")
        page.click("main button[type=submit]")
        page.fill("[name=login]", "boss")
        page.fill("[name=password]", PASSWORD)
        page.press("[name=password]", "Enter")
        page.wait_for_url("**/authenticate/")
        if second_step == "passkey":
            page.click("#mfa_webauthn_authenticate")
        else:
            page.fill("[name=code]", codes[0])
            page.press("[name=code]", "Enter")
        page.wait_for_url("**/admin/")


def test_a_passkey_that_cannot_be_used_is_explained(staff_pages: str, browser: Browser) -> None:
    page = browser.page
    page.goto(staff_pages.replace("localhost", "127.0.0.1") + "/signin/")
    page.click("#passkey_login")
    page.wait_for_selector("#passkey-problem:visible")
    assert f"Passkeys work at {staff_pages} only" in page.inner_text("#passkey-problem")
