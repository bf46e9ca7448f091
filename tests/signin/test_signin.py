"""How staff sign in: password and second factor."""

import logging
import re

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.models import User
from django.test import Client
from django.urls import NoReverseMatch, reverse
from pytest_django import Settings

from identity.staff.accounts.adapters import SecondFactors
from tests.signin.steps import ADMIN, SIGN_IN, give_code, give_password, html_of, is_signed_in
from tests.support.accounts import PASSWORD, TOTP_SECRET, new_staff, signed_in, totp_code, with_totp
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


@pytest.mark.parametrize("path", [ADMIN, "/admin/taxpayers/systemuser/"])
def test_without_a_second_factor_nothing_is_seen_before_it_is_set_up(
    client: Client, path: str
) -> None:
    give_password(client, new_staff("viewer").username)
    answer = client.get(path, follow=True)
    assert answer.redirect_chain[-1][0] == reverse("mfa_index")
    assert "set up a second step" in html_of(answer)


def test_recovery_codes_are_no_second_factor(client: Client) -> None:
    """They replace one that was lost, and nothing else: a password and a code open no page."""
    user = new_staff("viewer")
    RecoveryCodes.activate(user)
    give_password(client, user.username)
    assert client.get(ADMIN).headers["Location"] == reverse("mfa_index")
    assert signed_in(user).get(ADMIN).headers["Location"] == reverse("mfa_index")


def test_after_the_set_up_of_an_app_the_staff_pages_open(client: Client) -> None:
    give_password(client, new_staff("viewer").username)
    page = html_of(client.get(reverse("mfa_activate_totp")))
    secret = re.search(r'id="authenticator_secret" value="([A-Z2-7]+)"', page)
    assert secret is not None
    answer = client.post(reverse("mfa_activate_totp"), {"code": totp_code(secret[1])})
    assert answer.headers["Location"] == reverse("mfa_view_recovery_codes")
    pages = [html_of(client.get(reverse("mfa_view_recovery_codes"))) for _ in range(2)]
    assert ['id="recovery-codes"' in page for page in pages] == [True, False]  # shown once
    assert is_signed_in(client)


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


def test_an_unknown_name_and_a_wrong_password_get_the_same_answer(officer: User) -> None:
    answers = [
        re.sub(
            r'nonce="[^"]*"|name="csrfmiddlewaretoken" value="\w+"|nobody|security-officer',
            "",
            text,
        )
        for text in (
            html_of(give_password(Client(), "nobody", "wrong")),
            html_of(give_password(Client(), officer.username, "wrong")),
        )
    ]
    assert answers[0] == answers[1]
    assert WRONG in answers[0]


def test_a_disabled_account_looks_like_a_wrong_password(client: Client, officer: User) -> None:
    User.objects.update(is_active=False)
    assert WRONG in html_of(give_password(client, officer.username))


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


def test_failures_are_logged_with_name_and_address(
    client: Client, officer: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "identity.staff.accounts"):
        give_password(client, officer.username, "wrong")
        give_password(client, officer.username)
        give_code(client, totp_code())
    logged = [(r.message, vars(r)["username"], vars(r)["address"]) for r in caplog.records]
    assert logged == [
        ("sign-in failed", officer.username, "127.0.0.1"),
        ("signed in", officer.username, "127.0.0.1"),
    ]
    assert PASSWORD not in caplog.text
