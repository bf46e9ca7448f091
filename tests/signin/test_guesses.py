"""Guessing passwords and codes ends soon, and locks out only the person who guesses."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from identity.staff.models import StaffSignIn
from tests.signin.passkey import Passkey, as_second_step, sign_in_with
from tests.signin.steps import aged, give_code, give_password, html_of, is_signed_in, sign_in
from tests.support.accounts import new_staff, signed_in, totp_code, with_totp

pytestmark = pytest.mark.django_db
WRONG = "The user name or the password is wrong"
TOO_MANY = "Too many failed attempts. Sign in with a passkey, or wait for 15 minutes"
OFFICE, ELSEWHERE = "198.51.100.7", "203.0.113.9"


def at(address: str) -> Client:
    return Client(REMOTE_ADDR=address)


def guess(client: Client, username: str, times: int = 1) -> str:
    return [html_of(give_password(client, username, "wrong")) for _ in range(times)][-1]


def is_refused(client: Client, user: User) -> bool:
    answer = give_password(client, user.username)
    if answer.status_code == 200:
        assert TOO_MANY in html_of(answer)
    return answer.status_code == 200


# --- Passwords ------------------------------------------------------------------------------------


@pytest.mark.parametrize("username", ["security-officer", "nobody"])
def test_after_five_failures_even_the_right_password_is_refused_for_15_minutes(
    officer: User, username: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(8):
        assert not is_refused(at(OFFICE), officer)  # a right password does not count
    client = at(OFFICE)
    for _ in range(5):
        assert WRONG in guess(client, username)
    caplog.clear()
    assert TOO_MANY in html_of(give_password(client, username))
    (logged,) = [record for record in caplog.records if record.name.startswith("identity")]
    assert (logged.message, vars(logged)["username"]) == ("locked out", username)
    assert TOO_MANY in html_of(give_password(at(OFFICE), username))  # no cookie is to blame
    fullwidth = "".join(chr(ord(letter) + 0xFEE0) for letter in username)
    for spelling in (username.upper(), fullwidth):
        assert TOO_MANY in guess(at(OFFICE), spelling)
    seconds = time.time() + 15 * 60 + 1
    later = SimpleNamespace(time=lambda: seconds, monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr("allauth.core.internal.ratelimit.time", later)
    assert TOO_MANY not in html_of(give_password(client, username))


def test_guesses_elsewhere_lock_out_no_other_browser(officer: User) -> None:
    guess(at(ELSEWHERE), officer.username, 60)  # that many do not use up those of the name
    assert is_refused(at(ELSEWHERE), officer)
    assert not is_refused(at(OFFICE), officer)


@pytest.mark.parametrize("address", [ELSEWHERE, "2001:db8::{}"])
def test_an_address_that_tries_many_names_is_stopped_and_no_other_one(
    officer: User, address: str
) -> None:
    for number in range(20):
        guess(at(address.format(number)), f"guess-{number}")
    assert is_refused(at(address.format("ffff:1")), officer)
    assert not is_refused(at(OFFICE), officer)


# --- A name, attacked from everywhere -------------------------------------------------------------


@pytest.fixture
def own(officer: User) -> Client:
    client = sign_in(at(OFFICE), officer)
    client.post(reverse("account_logout"))
    return client


def test_a_browser_in_which_they_have_signed_in_is_never_locked_out_by_others(
    own: Client, officer: User
) -> None:
    """A name that is guessed everywhere is closed for strangers, and open for its passkey."""
    for number in range(50):
        guess(at(f"192.0.2.{number}"), officer.username)
    for _ in range(5):
        guess(at(OFFICE), officer.username)  # a person in the same office
    for number in range(20):
        guess(at(OFFICE), f"guess-{number}")
    assert is_refused(at(OFFICE), officer)
    assert not is_refused(own, officer)
    own.defaults["REMOTE_ADDR"] = "203.0.113.77"  # and wherever they are
    assert not is_refused(own, officer)
    assert is_refused(at("192.0.2.250"), officer)
    assert WRONG in guess(at("192.0.2.250"), "another")
    passkey, client = Passkey(officer), at("192.0.2.1")
    for _ in range(40):
        client.post(reverse("mfa_login_webauthn"), {"credential": "{}"})  # is not counted
    guess(client, officer.username, 5)
    assert is_refused(client, officer)
    assert sign_in_with(passkey, client).headers["Location"] == "/admin/"
    assert is_signed_in(client)


def test_a_passkey_of_another_person_is_refused(officer: User) -> None:
    passkey, client = Passkey(officer), at(OFFICE)
    passkey.user = new_staff("auditor")
    sign_in_with(passkey, client)
    assert not is_signed_in(client)


def test_in_a_known_browser_guesses_end_soon_too(own: Client, officer: User) -> None:
    sign_in_with(Passkey(officer), other := at(OFFICE))
    other.post(reverse("account_logout"))
    guess(own, officer.username, 5)
    assert is_refused(own, officer)
    own.defaults["REMOTE_ADDR"] = ELSEWHERE
    assert is_refused(own, officer)
    assert not is_refused(other, officer)


# --- The cookie of a known browser ----------------------------------------------------------------


def cookie_of(client: Client) -> Any:
    return client.cookies.get("browser")


def test_only_a_whole_sign_in_makes_a_browser_known(officer: User) -> None:
    client = at(OFFICE)
    guess(client, officer.username)
    assert not is_refused(client, officer)
    assert cookie_of(client) is None
    give_code(client, totp_code())
    cookie = cookie_of(client)
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 15_552_000)
    assert officer.username not in cookie.value


@pytest.mark.slow
def test_a_cookie_that_is_not_valid_for_this_person_is_ignored(
    officer: User, settings: Settings
) -> None:
    colleague = with_totp(new_staff("auditor"))
    value = cookie_of(sign_in(at(OFFICE), colleague)).value
    for user in (officer, colleague):
        guess(at(ELSEWHERE), user.username, 5)
    tampered = value[:4] + ("A" if value[4] != "A" else "B") + value[5:]

    def is_refused_with(cookie: str, user: User) -> bool:
        client = at(ELSEWHERE)
        client.cookies["browser"] = cookie
        return is_refused(client, user)

    assert not is_refused_with(value, colleague)
    assert is_refused_with(value, officer), "of another person"
    assert is_refused_with(tampered, colleague)
    settings.BROWSER_COOKIE_AGE = -1
    assert is_refused_with(value, colleague), "expired"


def test_people_who_share_a_browser_are_all_known_to_it(officer: User) -> None:
    other = with_totp(new_staff("auditor"))
    client = at(OFFICE)
    for user in (officer, other):
        sign_in(client, user)
        client.post(reverse("account_logout"))
    for user in (officer, other):
        guess(at(OFFICE), user.username, 5)
        assert is_refused(at(OFFICE), user)
        assert not is_refused(client, user)


# --- Codes ----------------------------------------------------------------------------------------


def guess_codes(address: str, user: User, times: int) -> Client:
    client = at(address)
    assert not is_refused(client, user)
    for _ in range(times):
        give_code(client, "000000")
    return client


def test_codes_are_locked_out_after_failures_too(officer: User) -> None:
    client = guess_codes(OFFICE, officer, 5)
    assert TOO_MANY in html_of(give_code(client, totp_code()))
    assert StaffSignIn.objects.filter(outcome=StaffSignIn.LOCKED_OUT).exists()
    assert not is_signed_in(client)
    again = at(OFFICE)
    assert not is_refused(again, officer)
    assert TOO_MANY in html_of(give_code(again, totp_code()))
    assert as_second_step(Passkey(officer), again).status_code == 302  # a security key still works
    assert is_signed_in(again)


def test_codes_that_are_guessed_everywhere_are_closed_for_strangers_only(
    own: Client, officer: User
) -> None:
    for number in range(10):
        guess_codes(f"192.0.2.{number}", officer, 1)
    stranger = guess_codes("192.0.2.250", officer, 0)
    assert TOO_MANY in html_of(give_code(stranger, totp_code(step=1)))
    assert not is_refused(own, officer)
    assert "Incorrect code" in html_of(give_code(own, "000000"))


# --- Confirmation before a second step is changed -------------------------------------------------


def test_codes_of_a_confirmation_are_counted_as_well(officer: User) -> None:
    client = aged(signed_in(officer, REMOTE_ADDR=OFFICE), 301)
    for _ in range(5):
        client.post(reverse("mfa_reauthenticate"), {"code": "000000"})
    answer = client.post(reverse("mfa_reauthenticate"), {"code": totp_code()})
    assert TOO_MANY in html_of(answer)
