"""Sign-ins and sessions of staff: cookies, timeouts, what is stored of them, how they are ended."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from identity.staff.accounts.sign_ins import open_sessions
from identity.staff.models import StaffAccount, StaffSignIn
from taxpayers.models import Change
from tests.servers.service import manage, service_environment
from tests.signin.passkey import Passkey
from tests.signin.steps import ADMIN, SIGN_IN, aged, give_code, give_password, html_of, is_signed_in
from tests.support.accounts import PASSWORD, new_staff, signed_in, totp_code, with_totp
from tests.support.command_line import output_of
from tests.support.staff import list_url, page_url, staff_client, task_url, text_of

pytestmark = pytest.mark.django_db


def test_an_idle_session_ends(officer: User, settings: Settings) -> None:
    client = signed_in(officer)
    assert is_signed_in(client)
    left = Session.objects.get().expire_date - timezone.now()
    assert timedelta(minutes=29) < left <= timedelta(minutes=30)
    aged(client, seen_at=61)
    Session.objects.update(expire_date=timezone.now() + timedelta(seconds=30))
    assert is_signed_in(client)  # which restarts the idle time
    assert Session.objects.get().expire_date > timezone.now() + timedelta(minutes=29)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert not is_signed_in(client)


def test_a_long_session_ends_even_if_it_is_active(officer: User) -> None:
    client = aged(signed_in(officer), signed_in_at=9.9 * 3600, seen_at=61)
    started = client.session["signed_in_at"]
    assert is_signed_in(client)
    assert client.get(f"{SIGN_IN}stay/").json()["seconds"] <= 0.1 * 3600
    assert client.session["signed_in_at"] == started  # use does not make it younger
    aged(client, signed_in_at=0.1 * 3600 + 1)
    answer = client.get(ADMIN, follow=True)
    assert answer.redirect_chain[-1][0].startswith(SIGN_IN)
    assert "maximum length" in html_of(answer)


def test_sign_out_needs_a_post_request(officer: User) -> None:
    client = signed_in(officer)
    client.get(reverse("account_logout"))
    assert is_signed_in(client)
    assert client.post(reverse("account_logout")).headers["Location"] == SIGN_IN
    assert not is_signed_in(client)
    assert not Session.objects.filter(session_data__contains="_auth").exists()


def test_the_session_cookie_is_new_for_this_site_and_not_for_scripts(
    client: Client, officer: User
) -> None:
    give_password(client, officer.username)
    before = client.cookies["sessionid"].value
    give_code(client, totp_code())
    cookie = client.cookies["sessionid"]
    assert cookie.value != before
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert cookie["max-age"] == ""  # it ends with the browser
    assert client.cookies["csrftoken"]["samesite"] == "Strict"


def test_without_https_the_sign_in_is_redirected(settings: Settings) -> None:
    settings.TRUSTED_PROXIES, settings.SECURE_SSL_REDIRECT = ["127.0.0.1"], True
    assert Client(headers={"x-forwarded-proto": "https"}).get(SIGN_IN).status_code == 200
    assert Client().get(SIGN_IN).status_code == 301


def test_with_https_cookies_are_secure_and_bound_to_the_host(tmp_path: Any) -> None:
    environment = service_environment(
        tmp_path, 0, AUTH_URL="https://identity.example.org", SESSION_IDLE_MINUTES="5"
    )
    output = manage(environment, "diffsettings", "--all")
    for line in (
        "SESSION_COOKIE_SECURE = True",
        "CSRF_COOKIE_SECURE = True",
        "SESSION_COOKIE_NAME = '__Host-session'",
        "CSRF_COOKIE_NAME = '__Host-csrf'",
        "SESSION_COOKIE_AGE = 300",
        "STAFF_URL = 'https://identity.example.org'",
    ):
        assert line in output


# Each page that changes a second factor, or shows what replaces one; with its methods.
CHANGES = {
    "mfa_view_recovery_codes": ("get",),
    "mfa_generate_recovery_codes": ("get", "post"),
    "mfa_deactivate_totp": ("get", "post"),
    "mfa_add_webauthn": ("get", "post"),
    "mfa_remove_webauthn": ("get", "post"),
    "mfa_edit_webauthn": ("get", "post"),
}


def factors() -> list[tuple[str, Any]]:
    return list(Authenticator.objects.order_by("pk").values_list("type", "data"))


@pytest.mark.parametrize(
    ("name", "method"), [(name, method) for name, methods in CHANGES.items() for method in methods]
)
def test_a_second_factor_changes_only_within_five_minutes_of_a_confirmation(
    officer: User, name: str, method: str
) -> None:
    RecoveryCodes.activate(officer)
    Passkey(officer)
    key = officer.authenticator_set.get(type="webauthn").pk
    url = reverse(name, args=[key] if name.endswith(("remove_webauthn", "edit_webauthn")) else [])
    before = factors()
    client = aged(signed_in(officer), 301)
    assert is_signed_in(client)
    answer = getattr(client, method)(url, {"name": "stolen"})
    assert answer.status_code == 302
    assert urlsplit(answer.headers["Location"]).path in (
        reverse("account_reauthenticate"),
        reverse("mfa_reauthenticate"),
    )
    assert factors() == before
    confirmed = getattr(aged(signed_in(officer), 240), method)(url)
    assert "reauthenticate" not in confirmed.get("Location", "")


def test_the_first_app_too_needs_a_confirmation(settings: Settings) -> None:
    settings.SECOND_FACTOR_REQUIRED = False  # as in a trial, where a password is enough
    client = Client()
    give_password(client, new_staff("viewer").username)
    assert client.get(reverse("mfa_activate_totp")).status_code == 200
    answer = aged(client, 301).get(reverse("mfa_activate_totp"))
    assert urlsplit(answer.headers["Location"]).path == reverse("account_reauthenticate")
    page = text_of(client.get(answer.headers["Location"]))
    assert "Confirm that it is you You are about to change how you sign in." in page


@pytest.mark.parametrize(
    ("page", "given", "is_right"),
    [
        ("account_reauthenticate", lambda: {"password": PASSWORD}, True),
        ("account_reauthenticate", lambda: {"password": "wrong"}, False),
        ("mfa_reauthenticate", lambda: {"code": totp_code()}, True),
        ("mfa_reauthenticate", lambda: {"code": "000000"}, False),
    ],
)
def test_a_password_or_a_code_confirms_a_change_of_the_second_factor(
    officer: User, page: str, given: Callable[[], dict[str, str]], is_right: bool
) -> None:
    client = aged(signed_in(officer), 301)
    client.post(reverse(page), given())
    client.post(reverse("mfa_deactivate_totp"))
    assert Authenticator.objects.exists() is not is_right


def test_the_public_paths_do_not_touch_the_session(officer: User) -> None:
    client = signed_in(officer)
    before = client.session.session_key, dict(client.session)
    for path in ("/connect/token", "/.well-known/jwks.json", "/status/0", "/health/live"):
        answer = client.post(path) if path == "/connect/token" else client.get(path)
        assert not answer.cookies, path
        assert "Vary" not in answer.headers, path
    assert (client.session.session_key, dict(client.session)) == before


SIGN_INS = list_url(StaffSignIn)


def browser(address: str) -> Client:
    return Client(REMOTE_ADDR=address, headers={"user-agent": "Firefox/140"})


def stored() -> list[tuple[Any, ...]]:
    rows = StaffSignIn.objects.order_by("pk")
    return list(rows.values_list("outcome", "username", "address", "program"))


def test_sign_ins_are_stored_for_400_days_and_logged_with_name_address_and_program(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "identity.staff.accounts")
    for days in (399, 401):
        StaffSignIn.objects.create(at=timezone.now() - timedelta(days=days), outcome="signed in")
    with_totp(new_staff("viewer", "siti"))
    client = browser("198.51.100.7")
    give_password(client, "siti", "wrong")
    give_password(client, "my-Password-in-the-wrong-field", "wrong")
    give_password(client, "siti")
    give_code(client, "000000")
    give_code(client, totp_code())
    here = ("198.51.100.7", "Firefox/140")
    failed, signed = ("sign-in failed", "siti", *here), ("signed in", "siti", *here)
    old, unknown = ("signed in", "", None, ""), ("sign-in failed", "", *here)
    assert stored() == [old, failed, unknown, failed, signed]
    of_siti = [vars(record) for record in caplog.records if vars(record)["username"] == "siti"]
    logged = [(one["message"], one["username"], one["address"]) for one in of_siti]
    assert logged == [one[:3] for one in (failed, failed, signed)]
    assert PASSWORD not in caplog.text


def test_lock_outs_fill_no_table() -> None:
    for _ in range(40):
        give_password(browser("198.51.100.8"), "nobody", "wrong")
    assert [outcome for outcome, *_ in stored()] == ["sign-in failed"] * 5 + ["locked out"] * 20


@pytest.fixture
def clerk(db: None) -> StaffAccount:
    user = with_totp(new_staff("registrar", "nurul"))
    for address in ("192.0.2.1", "192.0.2.2"):
        client = signed_in(user)
        session = client.session
        session["address"] = address
        session.save()
    StaffSignIn.objects.create(
        at=timezone.now(), outcome="locked out", username="nurul", address="192.0.2.9"
    )
    return user


@pytest.mark.parametrize("role", ["auditor", "account manager"])
def test_auditors_and_account_managers_see_sign_ins_and_open_sessions(
    role: str, clerk: StaffAccount
) -> None:
    client = staff_client(role)
    page = text_of(client.get(SIGN_INS))
    for shown in ("192.0.2.1", "192.0.2.2", "Locked out: too many attempts nurul 192.0.2.9"):
        assert shown in page
    assert "192.0.2.9" not in text_of(client.get(SIGN_INS, {"q": "192.0.2.77"}))
    assert "192.0.2.9" in text_of(client.get(SIGN_INS, {"q": "192.0.2.9", "outcome": "failed"}))
    own = text_of(client.get(page_url(clerk)))
    assert "Open sessions" in own
    assert "192.0.2.2" in own
    assert ("End sessions" in own) == (role == "account manager")


@pytest.mark.parametrize("is_one", [True, False], ids=["one", "all"])
def test_an_account_manager_ends_sessions(clerk: StaffAccount, is_one: bool) -> None:
    manager, url = staff_client("account manager"), task_url(clerk, "end_sessions")
    first = open_sessions(timezone.now(), clerk)[0]
    asked = manager.get(f"{url}?session={first.mark}")
    assert asked.context["form"]["session"].value() == first.mark
    assert first.key not in asked.content.decode()
    sent = {"session": first.mark if is_one else "", "reason": "a lost laptop"}
    assert manager.post(url, sent).status_code == 302
    left = {one.key for one in open_sessions(timezone.now(), clerk)}
    assert len(left) == (1 if is_one else 0)
    assert first.key not in left
    change = Change.objects.latest("pk")
    assert (change.action, change.reason) == ("end_sessions", "a lost laptop")
    assert (change.before, change.after) == ({"open_sessions": 2}, {"open_sessions": len(left)})


def test_an_operator_ends_them_by_a_command(clerk: StaffAccount) -> None:
    assert output_of("end_sessions", "nurul") == "nurul is signed out everywhere.\n"
    assert not Session.objects.exists()
