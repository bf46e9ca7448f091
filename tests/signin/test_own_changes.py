"""What people change of their own sign-in: the first password, the second factor, passkeys."""

from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.staff.accounts.changes.sign_in import IssuedPassword, set_first_password
from identity.staff.models import FirstPassword
from taxpayers.models import Change
from taxpayers.services import Author
from tests.signin.passkey import Passkey, set_up, sign_in_with
from tests.signin.steps import ADMIN, SIGN_IN, give_code, give_password, html_of
from tests.support.accounts import PASSWORD, new_staff, signed_in, totp_code, with_totp
from tests.support.moments import why
from tests.support.staff import page_url, staff_client, text_of

pytestmark = pytest.mark.django_db
OWN = "another-long-Password-2"
CODES = "recovery_codes_created_at"


def post(client: Client, name: str, sent: dict[str, Any] | None = None, *keys: int) -> Any:
    return client.post(reverse(name, args=keys), sent or {})


def only_change(owner: User, action: str) -> Change:
    row = Change.objects.get()
    assert (row.by, row.address, row.action) == (owner.username, "127.0.0.1", action)
    assert (row.object_type, row.object_id) == ("staffaccount", str(owner.pk))
    assert abs((timezone.now() - row.at).total_seconds()) < 60
    return row


def test_a_new_password_is_in_the_history_without_the_password(officer: User) -> None:
    client = signed_in(officer)
    asked = client.get(reverse("account_change_password"))
    for text in (
        "Change your password",
        "Your present password",
        "At least 8 characters. Not your",
    ):
        assert text in text_of(asked)
    assert asked.context["form"].fields["oldpassword"].widget.attrs["autofocus"]
    sent = {"oldpassword": PASSWORD, "password1": OWN, "password2": OWN}
    post(client, "account_change_password", sent | {"oldpassword": "wrong"})
    assert not Change.objects.exists()
    post(client, "account_change_password", sent)
    officer.refresh_from_db()
    assert officer.check_password(OWN)
    assert client.get("/admin/").status_code == 200  # this session goes on
    row = only_change(officer, "change_own_password")
    assert (row.before, row.after, row.reason) == ({}, {}, "")


def test_an_app_that_is_set_up_or_removed_is_in_the_history_without_its_secret(
    client: Client,
) -> None:
    owner = new_staff("viewer")
    give_password(client, owner.username)
    secret = client.get(reverse("mfa_activate_totp")).context["form"].secret
    post(client, "mfa_activate_totp", {"code": "000000"})
    assert not Change.objects.exists()
    post(client, "mfa_activate_totp", {"code": totp_code(secret)})
    row = only_change(owner, "change_own_second_step")
    codes = Authenticator.objects.get(type="recovery_codes")
    assert row.before == {"second_step": [], CODES: None}
    assert row.after == {"second_step": ["authenticator app"], CODES: codes.created_at.isoformat()}
    stored = str(list(Change.objects.values()))
    assert secret not in stored
    assert not any(code in stored for code in codes.wrap().get_unused_codes())
    Change.objects.all().delete()
    post(client, "mfa_deactivate_totp")
    row = only_change(owner, "change_own_second_step")
    assert row.before["second_step"] == ["authenticator app"]
    assert row.after["second_step"] == []
    page = text_of(staff_client("account manager").get(page_url(owner)))
    assert "Changed their own second step" in page
    assert "authenticator app" in page


def test_a_passkey_is_in_the_history_by_its_name(officer: User) -> None:
    client, app = signed_in(officer), "authenticator app"
    set_up(Passkey(officer, is_registered=False), client, "My laptop")
    codes = Authenticator.objects.get(type="recovery_codes")
    row = only_change(officer, "change_own_second_step")
    assert row.before == {"second_step": [app], CODES: None}
    added = {CODES: codes.created_at.isoformat()}
    assert row.after == {"second_step": [app, "passkey My laptop"]} | added
    key = Authenticator.objects.get(type="webauthn").pk
    for name, sent, before, after in (
        ("mfa_edit_webauthn", {"name": "Old"}, [app, "passkey My laptop"], [app, "passkey Old"]),
        ("mfa_remove_webauthn", {}, [app, "passkey Old"], [app]),
    ):
        Change.objects.all().delete()
        post(client, name, sent, key)
        row = only_change(officer, "change_own_second_step")
        assert (row.before, row.after) == ({"second_step": before}, {"second_step": after})


def test_new_recovery_codes_are_in_the_history_by_their_date(officer: User) -> None:
    before = RecoveryCodes.activate(officer).instance.created_at
    post(signed_in(officer), "mfa_generate_recovery_codes")
    after = Authenticator.objects.get(type="recovery_codes").created_at
    row = only_change(officer, "change_own_second_step")
    assert (row.before, row.after) == ({CODES: before.isoformat()}, {CODES: after.isoformat()})


@pytest.mark.parametrize("page", ["account_change_password", "mfa_deactivate_totp"])
def test_what_cannot_be_recorded_is_not_changed(
    page: str, officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("no history")

    monkeypatch.setattr("taxpayers.services.history.record_change", fail)
    own = {"oldpassword": PASSWORD, "password1": OWN, "password2": OWN}
    with pytest.raises(RuntimeError, match="no history"):
        post(signed_in(officer), page, own)
    officer.refresh_from_db()
    assert officer.check_password(PASSWORD)
    assert officer.authenticator_set.count() == 1


CHOOSE = "/signin/password/own/"


@pytest.fixture
def issued() -> IssuedPassword:
    return set_first_password(account=new_staff("viewer", "badrul"), **why(Author("mariam")))


def choose(client: Client, password: str, again: str = "") -> str:
    sent = {"password1": password, "password2": again or password}
    return html_of(client.post(CHOOSE, sent))


def test_nothing_opens_before_the_first_password_is_replaced(
    client: Client, issued: IssuedPassword
) -> None:
    Change.objects.all().delete()
    give_password(client, "badrul", issued.password)
    for path in (ADMIN, "/admin/tokens/loginevent/", reverse("mfa_add_webauthn")):
        assert client.get(path).headers["Location"] == CHOOSE
    assert "Choose your password" in html_of(client.get(CHOOSE))
    choose(client, OWN)
    row = only_change(issued.account, "change_own_password")
    assert row.before == {"first_password_expires_at": issued.expires_at.isoformat()}
    assert row.after == {"first_password_expires_at": None}
    assert client.get(ADMIN).headers["Location"] == reverse("mfa_index")  # then the second step
    assert User.objects.get(username="badrul").check_password(OWN)
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
