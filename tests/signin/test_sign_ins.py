"""Sign-ins of staff are stored, and shown to auditors and account managers; sessions are ended."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from identity.staff.accounts.sign_ins import open_sessions
from identity.staff.models import StaffAccount, StaffSignIn
from taxpayers.models import Change
from tests.signin.steps import give_code, give_password
from tests.support.accounts import new_staff, signed_in, totp_code, with_totp
from tests.support.command_line import output_of
from tests.support.staff import list_url, page_url, staff_client, task_url, text_of

pytestmark = pytest.mark.django_db
SIGN_INS = list_url(StaffSignIn)


def browser(address: str) -> Client:
    return Client(REMOTE_ADDR=address, headers={"user-agent": "Firefox/140"})


def stored() -> list[tuple[Any, ...]]:
    rows = StaffSignIn.objects.order_by("pk")
    return list(rows.values_list("outcome", "username", "address", "program"))


def test_success_failures_and_lock_outs_are_stored_with_name_address_and_program() -> None:
    with_totp(new_staff("viewer", "siti"))
    client = browser("198.51.100.7")
    give_password(client, "siti", "wrong")
    give_password(client, "my-Password-in-the-wrong-field", "wrong")
    give_password(client, "siti")
    give_code(client, "000000")
    give_code(client, totp_code())
    here = ("198.51.100.7", "Firefox/140")
    failed, signed = ("sign-in failed", "siti", *here), ("signed in", "siti", *here)
    assert stored() == [failed, ("sign-in failed", "", *here), failed, signed]


def test_lock_outs_fill_no_table() -> None:
    for _ in range(40):
        give_password(browser("198.51.100.8"), "nobody", "wrong")
    outcomes = [outcome for outcome, *_ in stored()]
    assert outcomes == ["sign-in failed"] * 5 + ["locked out"] * 20


def test_rows_are_deleted_after_400_days() -> None:
    at = timezone.now()
    for days in (399, 401):
        StaffSignIn.objects.create(at=at - timedelta(days=days), outcome="signed in")
    with_totp(new_staff("viewer", "siti"))
    client = browser("198.51.100.9")
    give_password(client, "siti")
    give_code(client, totp_code())
    assert StaffSignIn.objects.count() == 2


@pytest.fixture
def clerk(db: None) -> User:
    """Signed in at two computers."""
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
    role: str, clerk: User
) -> None:
    client = staff_client(role)
    page = text_of(client.get(SIGN_INS))
    for shown in ("192.0.2.1", "192.0.2.2", "Locked out: too many attempts nurul 192.0.2.9"):
        assert shown in page
    assert "192.0.2.9" not in text_of(client.get(SIGN_INS, {"q": "192.0.2.77"}))
    assert "192.0.2.9" in text_of(client.get(SIGN_INS, {"q": "192.0.2.9", "outcome": "failed"}))
    own = text_of(client.get(page_url(StaffAccount.objects.get(pk=clerk.pk))))
    assert "Open sessions" in own
    assert "192.0.2.2" in own
    assert ("End sessions" in own) == (role == "account manager")


@pytest.mark.parametrize("is_one", [True, False], ids=["one", "all"])
def test_an_account_manager_ends_sessions(clerk: User, is_one: bool) -> None:
    account = StaffAccount.objects.get(pk=clerk.pk)
    manager, url = staff_client("account manager"), task_url(account, "end_sessions")
    first = open_sessions(timezone.now(), account)[0]
    asked = manager.get(f"{url}?session={first.mark}")
    assert asked.context["form"]["session"].value() == first.mark
    assert first.key not in asked.content.decode()
    sent = {"session": first.mark if is_one else "", "reason": "a lost laptop"}
    assert manager.post(url, sent).status_code == 302
    left = {one.key for one in open_sessions(timezone.now(), account)}
    assert len(left) == (1 if is_one else 0)
    assert first.key not in left
    change = Change.objects.latest("pk")
    assert (change.action, change.reason) == ("end_sessions", "a lost laptop")
    assert (change.before, change.after) == ({"open_sessions": 2}, {"open_sessions": len(left)})


def test_an_operator_ends_them_by_a_command(clerk: User) -> None:
    assert output_of("end_sessions", "nurul") == "nurul is signed out everywhere.\n"
    assert not Session.objects.exists()
