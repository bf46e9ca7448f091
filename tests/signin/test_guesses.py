"""Guessing passwords and codes ends soon, and locks out nobody but the one who guesses."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from tests.signin.passkey import Passkey, as_second_step, sign_in_with
from tests.signin.steps import (
    give_code,
    give_password,
    html_of,
    is_signed_in,
    officer,
    production,
)
from tests.support.accounts import new_staff, signed_in, totp_code, with_totp

pytestmark = pytest.mark.django_db
WRONG = "The user name or the password is wrong"
TOO_MANY = "Too many failed attempts. Sign in with a passkey, or wait for 15 minutes"
OFFICE, ELSEWHERE = "198.51.100.7", "203.0.113.9"
__all__ = ["officer", "production"]  # the fixtures


def at(address: str, **headers: str) -> Client:
    """A browser that nobody has used, at this address."""
    return Client(REMOTE_ADDR=address, headers=headers)


def guess(client: Client, username: str, times: int = 1) -> str:
    """The last answer to so many wrong passwords."""
    return [html_of(give_password(client, username, "wrong")) for _ in range(times)][-1]


def is_refused(client: Client, user: User) -> bool:
    """Whether even the right password is refused."""
    answer = give_password(client, user.username)
    if answer.status_code == 200:
        assert TOO_MANY in html_of(answer)
    return answer.status_code == 200


def sign_in(client: Client, user: User, code: str) -> Client:
    """The same browser, after both steps."""
    assert not is_refused(client, user)
    assert give_code(client, code).status_code == 302
    return client


# --- Passwords ------------------------------------------------------------------------------------


@pytest.mark.parametrize("username", ["security-officer", "nobody"])
def test_after_five_failures_even_the_right_password_is_refused(
    officer: User, username: str
) -> None:
    client = at(OFFICE)
    for _ in range(5):
        assert WRONG in guess(client, username)
    assert TOO_MANY in html_of(give_password(client, username))
    assert TOO_MANY in html_of(give_password(at(OFFICE), username))  # no cookie is to blame
    assert TOO_MANY in guess(at(OFFICE), username.upper())


def test_who_guesses_elsewhere_locks_out_nobody(officer: User) -> None:
    guess(at(ELSEWHERE), officer.username, 8)
    assert is_refused(at(ELSEWHERE), officer)
    assert not is_refused(at(OFFICE), officer)


def test_the_lock_out_ends_by_itself(officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = at(OFFICE)
    guess(client, officer.username, 6)
    later = SimpleNamespace(
        time=lambda: time.time() + 15 * 60 + 1, monotonic=time.monotonic, sleep=time.sleep
    )
    monkeypatch.setattr("allauth.core.internal.ratelimit.time", later)
    assert not is_refused(client, officer)


def test_a_right_password_does_not_count(officer: User) -> None:
    for _ in range(8):
        assert not is_refused(at(OFFICE), officer)
    assert WRONG in guess(at(OFFICE), officer.username)


def test_an_address_that_tries_many_names_is_stopped_and_no_other_one(officer: User) -> None:
    for number in range(20):
        guess(at(ELSEWHERE), f"guess-{number}")
    assert is_refused(at(ELSEWHERE), officer)
    assert not is_refused(at(OFFICE), officer)


def test_an_ipv6_address_is_its_network(officer: User) -> None:
    for number in range(5):
        guess(at(f"2001:db8::{number}"), officer.username)
    assert is_refused(at("2001:db8::ffff:1"), officer)
    assert not is_refused(at("2001:db8:0:1::1"), officer)


def test_an_ipv6_network_that_tries_many_names_is_stopped(officer: User) -> None:
    for number in range(20):
        guess(at(f"2001:db8::{number}"), f"guess-{number}")
    assert is_refused(at("2001:db8::ffff:1"), officer)


@pytest.mark.parametrize("proxies", [[], ["127.0.0.1"]])
def test_a_made_up_address_helps_nobody(
    officer: User, settings: Settings, proxies: list[str]
) -> None:
    """Behind a trusted proxy the last address is the client's; otherwise the header is ignored."""
    settings.TRUSTED_PROXIES = proxies
    address = "127.0.0.1" if proxies else ELSEWHERE
    for number in range(6):
        guess(at(address, **{"x-forwarded-for": f"192.0.2.{number}, {ELSEWHERE}"}), "anybody")
    known = at(address, **{"x-forwarded-for": f"192.0.2.99, {ELSEWHERE}"})
    assert TOO_MANY in guess(known, "anybody")
    if proxies:
        honest = at(address, **{"x-forwarded-for": OFFICE})
        assert WRONG in guess(honest, "anybody")


# --- A name, attacked from everywhere -------------------------------------------------------------


@pytest.fixture
def attacked(officer: User) -> User:
    """An officer whose password is guessed from very many addresses."""
    for number in range(50):
        guess(at(f"192.0.2.{number}"), officer.username)
    return officer


def test_a_name_that_is_guessed_everywhere_is_closed_for_strangers(attacked: User) -> None:
    assert is_refused(at("192.0.2.250"), attacked)
    assert WRONG in guess(at("192.0.2.250"), "another")


def test_one_address_cannot_use_up_the_guesses_of_a_name(officer: User) -> None:
    guess(at(ELSEWHERE), officer.username, 60)
    assert not is_refused(at(OFFICE), officer)


def test_a_browser_in_which_they_have_signed_in_is_never_locked_out_by_others(
    officer: User,
) -> None:
    own = sign_in(at(OFFICE), officer, totp_code())
    own.post(reverse("account_logout"))
    for number in range(50):
        guess(at(f"192.0.2.{number}"), officer.username)
    for _ in range(5):
        guess(at(OFFICE), officer.username)  # somebody in the same office
    for number in range(20):
        guess(at(OFFICE), f"guess-{number}")
    assert is_refused(at(OFFICE), officer)
    assert not is_refused(own, officer)
    own.defaults["REMOTE_ADDR"] = "203.0.113.77"  # and wherever they are
    assert not is_refused(own, officer)


def test_in_a_known_browser_guesses_end_soon_too(officer: User) -> None:
    own = sign_in(at(OFFICE), officer, totp_code())
    own.post(reverse("account_logout"))
    guess(own, officer.username, 5)
    assert is_refused(own, officer)
    own.defaults["REMOTE_ADDR"] = ELSEWHERE
    assert is_refused(own, officer)


def test_a_passkey_always_works(attacked: User) -> None:
    passkey, client = Passkey(attacked), at("192.0.2.1")
    guess(client, attacked.username, 5)
    assert is_refused(client, attacked)
    assert sign_in_with(passkey, client).headers["Location"] == "/admin/"
    assert is_signed_in(client)


def test_failed_passkeys_stop_nobody(officer: User) -> None:
    passkey = Passkey(officer)
    for _ in range(40):
        at(OFFICE).post(reverse("mfa_login_webauthn"), {"credential": "{}"})
    client = at(OFFICE)
    assert sign_in_with(passkey, client).status_code == 302
    assert is_signed_in(client)


def test_a_passkey_of_somebody_else_is_refused(officer: User) -> None:
    passkey, client = Passkey(officer), at(OFFICE)
    passkey.user = new_staff("auditor")
    sign_in_with(passkey, client)
    assert not is_signed_in(client)


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
@pytest.mark.parametrize("change", ["of another person", "tampered", "expired"])
def test_a_cookie_that_is_not_valid_for_them_helps_nobody(
    attacked: User, change: str, settings: Settings
) -> None:
    colleague = with_totp(new_staff("auditor"))
    victim = attacked if change == "of another person" else colleague
    value = cookie_of(sign_in(at(OFFICE), colleague, totp_code())).value
    guess(at(ELSEWHERE), colleague.username, 5)
    if change == "tampered":
        value = value[:4] + ("A" if value[4] != "A" else "B") + value[5:]
    if change == "expired":
        settings.BROWSER_COOKIE_AGE = -1
    client = at(ELSEWHERE)
    client.cookies["browser"] = value
    assert is_refused(client, victim)


def test_people_who_share_a_browser_are_all_known_to_it(officer: User) -> None:
    other = with_totp(new_staff("auditor"))
    client = at(OFFICE)
    for user in (officer, other):
        sign_in(client, user, totp_code())
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
    assert not is_signed_in(client)
    again = at(OFFICE)
    assert not is_refused(again, officer)
    assert TOO_MANY in html_of(give_code(again, totp_code()))


def test_who_guesses_codes_elsewhere_locks_out_nobody(officer: User) -> None:
    guess_codes(ELSEWHERE, officer, 8)
    assert is_signed_in(sign_in(at(OFFICE), officer, totp_code()))


def test_codes_that_are_guessed_everywhere_are_closed_for_strangers_only(officer: User) -> None:
    own = sign_in(at(OFFICE), officer, totp_code())
    own.post(reverse("account_logout"))
    for number in range(10):
        guess_codes(f"192.0.2.{number}", officer, 1)
    stranger = guess_codes("192.0.2.250", officer, 0)
    assert TOO_MANY in html_of(give_code(stranger, totp_code(step=1)))
    assert not is_refused(own, officer)
    assert "Incorrect code" in html_of(give_code(own, "000000"))


def test_a_security_key_still_works_when_codes_are_closed(officer: User) -> None:
    passkey = Passkey(officer)
    client = guess_codes(OFFICE, officer, 6)
    assert as_second_step(passkey, client).status_code == 302
    assert is_signed_in(client)


# --- Confirmation before a second step is changed -------------------------------------------------

CHANGES = {
    "mfa_deactivate_totp": "post",
    "mfa_activate_totp": "post",
    "mfa_add_webauthn": "get",
    "mfa_generate_recovery_codes": "post",
}


def some_time_later(client: Client) -> Client:
    """Five minutes after the sign-in, or after the last confirmation."""
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 301
    session.save()
    return client


@pytest.mark.parametrize("name", CHANGES)
def test_a_second_step_is_not_changed_without_a_new_confirmation(name: str, officer: User) -> None:
    client = some_time_later(signed_in(officer))
    if name == "mfa_activate_totp":
        officer.authenticator_set.all().delete()
        Passkey(officer)
    before = factors_of(officer)
    answer = getattr(client, CHANGES[name])(reverse(name))
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith((reverse("account_reauthenticate"), "/signin/"))
    assert "next=" in answer.headers["Location"]
    assert factors_of(officer) == before


def test_a_key_is_not_removed_or_renamed_without_a_new_confirmation(officer: User) -> None:
    Passkey(officer)
    key = officer.authenticator_set.get(type="webauthn")
    client = some_time_later(signed_in(officer))
    for name in ("mfa_remove_webauthn", "mfa_edit_webauthn"):
        answer = client.post(reverse(name, args=[key.pk]), {"name": "stolen"})
        assert "next=" in answer.headers["Location"]
    key.refresh_from_db()
    assert key.wrap().name == "A phone"


def test_after_a_confirmation_it_is_changed(officer: User) -> None:
    client = some_time_later(signed_in(officer))
    client.post(reverse("mfa_deactivate_totp"))
    assert factors_of(officer) == ["totp"]
    client.post(reverse("mfa_reauthenticate"), {"code": totp_code()})
    client.post(reverse("mfa_deactivate_totp"))
    assert factors_of(officer) == []


def test_codes_of_a_confirmation_are_counted_as_well(officer: User) -> None:
    client = some_time_later(signed_in(officer, REMOTE_ADDR=OFFICE))
    for _ in range(5):
        client.post(reverse("mfa_reauthenticate"), {"code": "000000"})
    answer = client.post(reverse("mfa_reauthenticate"), {"code": totp_code()})
    assert TOO_MANY in html_of(answer)


def factors_of(user: User) -> list[str]:
    return sorted(user.authenticator_set.values_list("type", flat=True))
