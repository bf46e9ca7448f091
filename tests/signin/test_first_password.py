"""A first password opens one page: the one where its owner chooses another."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.staff.accounts.changes.sign_in import IssuedPassword, set_first_password
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.services import Author
from tests.signin.passkey import Passkey, sign_in_with
from tests.signin.steps import ADMIN, SIGN_IN, give_code, give_password, html_of
from tests.support.accounts import PASSWORD, new_staff, totp_code, with_totp

pytestmark = pytest.mark.django_db
CHOOSE = "/signin/password/own/"
OWN = "another-long-Password-2"


@pytest.fixture
def issued() -> IssuedPassword:
    """The first password of an account that was never used."""
    account = StaffAccount.objects.get(pk=new_staff("viewer", "badrul").pk)
    return set_first_password(account=account, reason="New", by=Author("mariam"), at=timezone.now())


def choose(client: Client, password: str, again: str = "") -> str:
    sent = {"password1": password, "password2": again or password}
    return html_of(client.post(CHOOSE, sent))


def test_nothing_opens_before_the_first_password_is_replaced(
    client: Client, issued: IssuedPassword
) -> None:
    give_password(client, "badrul", issued.password)
    for path in (ADMIN, "/admin/tokens/loginevent/", reverse("mfa_add_webauthn")):
        assert client.get(path).headers["Location"] == CHOOSE
    assert "Choose your password" in html_of(client.get(CHOOSE))
    choose(client, OWN)
    assert client.get(ADMIN).headers["Location"] == reverse("mfa_index")  # then the second step
    account = User.objects.get(username="badrul")
    assert account.check_password(OWN)
    assert not FirstPassword.objects.exists()


def test_also_who_signs_in_by_passkey_replaces_it(client: Client, issued: IssuedPassword) -> None:
    sign_in_with(Passkey(User.objects.get(username="badrul")), client)
    assert client.get(ADMIN).headers["Location"] == CHOOSE


@pytest.mark.parametrize("asked_for", ["/admin/ending-soon/", "//evil.example/admin/"])
def test_today_opens_after_the_first_password_is_replaced(
    asked_for: str, client: Client, issued: IssuedPassword
) -> None:
    with_totp(User.objects.get(username="badrul"))
    sent = {"login": "badrul", "password": issued.password, "next": asked_for}
    client.post(SIGN_IN, sent)
    assert client.get(CHOOSE).headers["Location"].startswith(SIGN_IN)  # not yet signed in
    led_to = give_code(client, totp_code()).headers["Location"]
    assert client.get(led_to).headers["Location"] == CHOOSE
    answer = client.post(CHOOSE, {"password1": OWN, "password2": OWN})
    assert answer.headers["Location"] == ADMIN
    assert client.get(ADMIN).status_code == 200


@pytest.mark.parametrize(
    ("password", "again", "fault"),
    [
        ("short", "", "too short"),
        ("12345678901234", "", "entirely numeric"),
        (OWN, "another", "same password"),
        ("first", "", "another password than the first one"),
    ],
)
def test_a_password_that_does_not_do_is_refused(
    client: Client, issued: IssuedPassword, password: str, again: str, fault: str
) -> None:
    give_password(client, "badrul", issued.password)
    assert fault in choose(client, issued.password if password == "first" else password, again)
    assert FirstPassword.objects.exists()
    assert client.get(ADMIN).headers["Location"] == CHOOSE


def test_a_first_password_works_for_a_week(client: Client, issued: IssuedPassword) -> None:
    FirstPassword.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "This first password has expired." in html_of(
        give_password(client, "badrul", issued.password)
    )
    assert "_auth_user_id" not in client.session
    assert "expired" not in html_of(give_password(Client(), "badrul", "wrong"))  # says nothing


def test_another_person_who_signed_in_with_it_is_signed_out(issued: IssuedPassword) -> None:
    thief, owner = Client(), Client()
    for client in (thief, owner):
        give_password(client, "badrul", issued.password)
    choose(owner, OWN)
    assert thief.get(CHOOSE).headers["Location"].startswith(SIGN_IN)
    assert thief.post(CHOOSE, {"password1": PASSWORD, "password2": PASSWORD}).status_code == 302
    assert User.objects.get(username="badrul").check_password(OWN)


def test_who_has_a_password_of_their_own_does_not_get_by_without_the_old_one(
    client: Client,
) -> None:
    user = with_totp(new_staff("viewer"))
    give_password(client, user.username)
    give_code(client, totp_code())
    assert client.get(CHOOSE).headers["Location"] == reverse("account_change_password")
    choose(client, OWN)
    user.refresh_from_db()
    assert user.check_password(PASSWORD)
