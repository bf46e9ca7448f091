"""No person makes themselves able to register and to issue: a second one confirms, or it stops."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from identity.staff.accounts.changes.accounts import (
    change_role,
    create_account,
    set_account_active,
)
from identity.staff.accounts.changes.first_passwords import IssuedPassword, set_first_password
from identity.staff.accounts.changes.second_person import (
    LIFETIME,
    confirm_account,
    decline_account,
)
from identity.staff.accounts.changes.second_steps import reset_second_factor
from identity.staff.accounts.roles import ACCOUNT_MANAGER
from identity.staff.models import StaffAccount, WaitingChange
from taxpayers.models import Change
from taxpayers.services import Author, ServiceError
from tests.signin.passkey import Passkey, sign_in_with
from tests.support.accounts import PASSWORD, new_staff, signed_in, with_totp
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.staff import (
    errors_of,
    list_url,
    opened,
    page_url,
    staff_client,
    task_url,
    text_of,
)
from tokens.models import SigningKey

pytestmark = pytest.mark.django_db

AT = timezone.now()
MARIAM, OSMAN, OPERATOR = Author("mariam"), Author("osman"), Author("root (manage.py)")
WHY = "Ticket 4711"


@pytest.fixture(autouse=True)
def live(settings: Settings) -> Settings:
    settings.SECOND_PERSON_REQUIRED = True
    for name in ("mariam", "osman"):
        new_staff(ACCOUNT_MANAGER, name, password=None)
    return settings


def account(name: str = "badrul") -> StaffAccount:
    return StaffAccount.objects.get(username=name)


def colleague(role: str, **fields: Any) -> StaffAccount:
    with_totp(new_staff(role, "badrul"))
    User.objects.filter(username="badrul").update(**fields)
    return account()


@dataclass
class Asked:
    """What an account manager asks for, of an account with this role before; None: of a new one."""

    name: str
    role: str | None
    ask: Callable[[Author], Any]
    was_active: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.role or ''}".strip()

    def prepare(self) -> None:
        if self.role is not None:
            colleague(self.role, is_active=self.was_active)


def _create(by: Author, role: str = "registrar") -> Any:
    given = {"username": "badrul", "name": "Badrul", "role": role}
    return create_account(**given, reason=WHY, by=by, at=AT)


def _password(by: Author) -> Any:
    return set_first_password(account=account(), reason=WHY, by=by, at=AT)


def _reset(by: Author) -> Any:
    return reset_second_factor(account=account(), reason=WHY, by=by, at=AT)


def _activate(by: Author) -> Any:
    return set_account_active(account=account(), is_active=True, reason=WHY, by=by, at=AT)


def _officer(by: Author) -> Any:
    return change_role(account=account(), role="security officer", reason=WHY, by=by, at=AT)


CLOSING = [
    Asked("create_account", None, _create),
    Asked("set_first_password", "registrar", _password),
    Asked("set_first_password", "auditor", _password),
    Asked("set_first_password", ACCOUNT_MANAGER, _password),
    Asked("reset_second_factor", "security officer", _reset),
    Asked("activate_account", "registrar", _activate, was_active=False),
]
ROLES_ASKED = [
    Asked("change_role", "viewer", _officer),
    Asked("change_role", "registrar", _officer),
]
ASKED = [*CLOSING, *ROLES_ASKED]
each = pytest.mark.parametrize("asked", ASKED, ids=str)


def state() -> tuple[bool, str]:
    row = account()
    return row.is_active, row.role


def confirm(by: Author, at: Any = AT, **shown: Any) -> StaffAccount:
    return confirm_account(account=account(), reason="Met them", by=by, at=at, **shown)


# --- What waits -----------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("second", [OSMAN, OPERATOR], ids=["manager", "operator"])
def test_it_takes_effect_when_a_second_person_confirms(asked: Asked, second: Author) -> None:
    asked.prepare()
    asked.ask(MARIAM)
    before = state()
    assert before == (
        (False, asked.role or "registrar") if asked in CLOSING else (True, asked.role)
    )
    for who in (MARIAM, Author("badrul")):
        with pytest.raises(ServiceError, match=r"You asked for this|your own account"):
            confirm(who)
    assert state() == before
    confirm(second)
    role = "security officer" if asked in ROLES_ASKED else asked.role or "registrar"
    assert state() == (True, role)
    assert not WaitingChange.objects.exists()
    request, confirmation = Change.objects.order_by("pk")
    assert (request.action, request.by, request.reason) == (asked.name, "mariam", WHY)
    assert request.after["waits_until"] == (AT + LIFETIME).isoformat()
    assert (confirmation.action, confirmation.by) == ("confirm_account", second.name)
    assert (confirmation.reason, confirmation.after["asked_by"]) == ("Met them", "mariam")
    with pytest.raises(ServiceError, match="Nothing waits"):
        confirm(OPERATOR)


@each
def test_an_operator_needs_no_second_person(asked: Asked) -> None:
    asked.prepare()
    asked.ask(OPERATOR)
    role = "security officer" if asked in ROLES_ASKED else asked.role or "registrar"
    assert (state(), WaitingChange.objects.count()) == ((True, role), 0)


@each
def test_nothing_waits_where_no_second_person_is_required(asked: Asked, live: Settings) -> None:
    live.SECOND_PERSON_REQUIRED = False
    asked.prepare()
    asked.ask(MARIAM)
    assert (account().is_active, WaitingChange.objects.count()) == (True, 0)


@pytest.mark.parametrize("ask", [_password, _reset, _activate])
def test_an_account_that_only_reads_needs_no_second_person(ask: Callable[[Author], Any]) -> None:
    colleague("viewer", is_active=ask is not _activate)
    ask(MARIAM)
    assert (account().is_active, WaitingChange.objects.count()) == (True, 0)


def test_to_take_a_duty_away_needs_no_second_person() -> None:
    colleague("registrar")
    _officer(MARIAM)
    change_role(account=account(), role="viewer", reason=WHY, by=MARIAM, at=AT)
    assert (state(), WaitingChange.objects.count()) == ((True, "viewer"), 0)


@pytest.mark.parametrize("give", ["own permission", "role that waits", "superuser"])
def test_a_duty_is_seen_wherever_it_comes_from(give: str) -> None:
    row = colleague("viewer", is_superuser=give == "superuser")
    if give == "own permission":
        row.user_permissions.add(Permission.objects.get(codename="import_registry"))
    if give == "role that waits":
        _officer(OSMAN)
    new_staff("", "boss")
    _password(Author("boss"))
    assert not account().is_active


@pytest.mark.parametrize("asked", CLOSING, ids=str)
def test_no_way_in_is_open_before(asked: Asked) -> None:
    asked.prepare()
    session = signed_in(account()) if asked.role and asked.was_active else Client()
    issued = asked.ask(MARIAM)
    words = [PASSWORD, *([issued.password] if isinstance(issued, IssuedPassword) else [])]
    for word in words:
        assert authenticate(None, username="badrul", password=word) is None
    passkey, browser = Passkey(account()), Client(REMOTE_ADDR="192.0.2.1")
    sign_in_with(passkey, browser)
    for client in (session, browser):
        assert client.get("/admin/").status_code == 302
    confirm(OSMAN)
    assert authenticate(None, username="badrul", password=words[-1]) is not None
    sign_in_with(passkey, browser)
    assert "_auth_user_id" in browser.session


@each
def test_what_waited_too_long_is_not_confirmed_and_can_be_asked_for_again(asked: Asked) -> None:
    asked.prepare()
    asked.ask(MARIAM)
    before, late = state(), AT + LIFETIME
    with pytest.raises(ServiceError, match="waited too long"):
        confirm(OSMAN, at=late)
    assert state() == before
    if asked in ROLES_ASKED:
        change_role(account=account(), role="auditor", reason=WHY, by=MARIAM, at=late)
    else:
        set_account_active(account=account(), is_active=True, reason=WHY, by=MARIAM, at=late)
    confirm(OSMAN, at=late)
    assert account().is_active


@each
@pytest.mark.parametrize("by", [MARIAM, OSMAN], ids=["who asked", "another"])
def test_what_is_declined_never_happens(asked: Asked, by: Author) -> None:
    asked.prepare()
    issued = asked.ask(MARIAM)
    before = state()
    decline_account(account=account(), reason=WHY, by=by, at=AT)
    assert state() == before
    with pytest.raises(ServiceError, match="Nothing waits"):
        confirm(OSMAN)
    User.objects.update(is_active=True)
    if isinstance(issued, IssuedPassword):  # who asked knows it
        assert authenticate(None, username="badrul", password=issued.password) is None
    row = Change.objects.latest("pk")
    assert (row.action, row.by, row.before["asked_by"]) == ("decline_account", by.name, "mariam")


def test_of_two_who_asked_each_confirms_what_the_other_asked() -> None:
    colleague("registrar")
    _password(MARIAM)
    _reset(OSMAN)
    confirm(MARIAM)
    assert not account().is_active
    with pytest.raises(ServiceError, match="You asked for this"):
        confirm(MARIAM)
    confirm(OSMAN)
    assert account().is_active


def test_only_what_was_seen_is_confirmed() -> None:
    colleague("viewer")
    change_role(account=account(), role="auditor", reason=WHY, by=MARIAM, at=AT)
    seen = frozenset([str(WaitingChange.objects.get().pk)])
    _officer(MARIAM)
    with pytest.raises(ServiceError, match="Something else waits"):
        confirm(OSMAN, shown=seen)
    assert state() == (True, "viewer")


def test_a_superuser_does_not_count_as_the_last_account_manager() -> None:
    new_staff("", "boss")
    for name in ("mariam", "osman"):
        row = account(name)
        if name == "mariam":
            set_account_active(account=row, is_active=False, reason=WHY, by=OPERATOR, at=AT)
            continue
        with pytest.raises(ServiceError, match="the last active account"):
            set_account_active(account=row, is_active=False, reason=WHY, by=OPERATOR, at=AT)


# --- Commands: the way out ------------------------------------------------------------------------


def test_an_operator_creates_the_first_account_without_a_superuser() -> None:
    User.objects.all().delete()
    arguments = ("create_account", "nora", "--name", "Nora", "--role", ACCOUNT_MANAGER)
    answer = json_output_of(*arguments)
    assert answer["is_active"]
    assert authenticate(None, username="nora", password=answer["first_password"]) is not None
    assert Change.objects.get().after["role"] == ACCOUNT_MANAGER
    assert "invalid choice" in error_of(*arguments[:-1], "superuser")


def test_an_operator_confirms_for_a_manager_who_has_no_colleague() -> None:
    _create(MARIAM)
    [row] = json_output_of("confirm_account")["waiting"]
    assert (row["username"], row["asked_by"], row["role"]) == ("badrul", "mariam", "registrar")
    assert "create_account (registrar), asked by mariam" in output_of("confirm_account")
    assert json_output_of("confirm_account", "badrul")["is_active"]
    assert output_of("confirm_account") == "Nothing waits for a second person.\n"
    assert error_of("confirm_account", "badrul") == "Nothing waits for a second person."


def test_an_operator_ends_a_superuser() -> None:
    new_staff("", "boss")
    assert json_output_of("deactivate_account", "boss")["is_active"] is False
    assert not account("boss").is_active


# --- Duties that meet in one account --------------------------------------------------------------


def in_groups(name: str, *roles: str, also: str = "") -> User:
    user = new_staff(roles[0], name, password=None)
    user.groups.set(Group.objects.filter(name__in=roles))
    if also:
        user.user_permissions.add(Permission.objects.filter(codename=also)[0])
    return user


@pytest.mark.parametrize(
    ("roles", "also"),
    [
        (["registrar", "security officer"], ""),
        *((["registrar"], name) for name in ("issue_credentials", "rotate_secret")),
        *((["registrar"], name) for name in ("change_login_method", "register_system_user")),
        *((["security officer"], name) for name in ("import_registry", "grant_permission")),
    ],
)
@pytest.mark.parametrize("is_required", [True, False], ids=["live", "test"])
def test_an_account_with_both_duties_has_neither(
    roles: list[str], also: str, is_required: bool, live: Settings
) -> None:
    live.SECOND_PERSON_REQUIRED = is_required
    client = signed_in(with_totp(in_groups("both", *roles, also=also)))
    page = client.get("/admin/taxpayers/taxpayer/")
    assert "duties that need two people" in text_of(page)
    assert "Register taxpayer" not in text_of(page)
    for task in ("taxpayer/register_taxpayer", "systemuser/issue_credentials"):
        answer = client.get(f"/admin/taxpayers/{task}/")
        assert answer.status_code == 403
        assert b"duties that need two people" in answer.content
    auditor = staff_client("auditor")
    for url in (list_url(StaffAccount), page_url(account("both"))):
        assert "Conflicting roles" in text_of(auditor.get(url))


def test_a_superuser_only_reads_unless_no_second_person_is_required(live: Settings) -> None:
    client = staff_client()
    url = task_url(SigningKey, "rotate_signing_key")
    assert "A superuser can only read here" in text_of(client.get("/admin/"))
    assert client.get(url).status_code == 403
    live.SECOND_PERSON_REQUIRED = False
    assert "A superuser can only read" not in text_of(client.get("/admin/"))
    assert client.get(url).status_code == 200


# --- The pages ------------------------------------------------------------------------------------


def test_one_manager_asks_on_the_page_and_another_one_confirms() -> None:
    mariam, osman = (
        signed_in(with_totp(User.objects.get(username=n))) for n in ("mariam", "osman")
    )
    new = {"name": "Badrul", "username": "badrul", "role": "registrar", "reason": WHY}
    shown = text_of(mariam.post(task_url(StaffAccount, "create_account"), new))
    assert "It does not work yet." in shown
    own, url = mariam.get(page_url(account())), task_url(account(), "confirm_account")
    assert "You asked for this." in text_of(own)
    assert url not in [button.url for button in own.context["buttons"]]
    assert "You asked for this." in text_of(mariam.get(url, follow=True))
    today = osman.get("/admin/")
    assert "1 staff account waits for a second person" in text_of(today)
    listed = osman.get(today.context["waiting_accounts_url"]).context["cl"].result_list
    assert [row.username for row in listed] == ["badrul"]
    form = opened(osman, url)
    assert "asked by mariam" in text_of(osman.get(url))
    wrong = osman.post(url, form | {"shown": "0", "reason": "Met them"})
    assert "Something else waits" in errors_of(wrong)
    done = osman.post(url, form | {"reason": "Met them"}, follow=True)
    assert "can sign in." in text_of(done)
    assert state() == (True, "registrar")


@pytest.mark.parametrize(
    ("task", "values", "says"),
    [
        ("change_role", {"role": "security officer"}, "waits for a second person"),
        ("reset_second_factor", {}, "can sign in when a second person has confirmed"),
        ("activate_account", {}, "can sign in when a second person has confirmed"),
    ],
)
def test_a_page_says_that_it_waits_and_it_can_be_declined(
    task: str, values: dict[str, str], says: str
) -> None:
    colleague("registrar", is_active=task != "activate_account")
    mariam = signed_in(with_totp(User.objects.get(username="mariam")))
    url = task_url(account(), task)
    assert "a second person must confirm this" in text_of(mariam.get(url))
    form = opened(mariam, url) | {"reason": WHY} | values
    assert says in text_of(mariam.post(url, form, follow=True))
    decline = task_url(account(), "decline_account")
    assert "Declined." in text_of(mariam.post(decline, {"reason": WHY}, follow=True))
    assert not WaitingChange.objects.exists()


def test_what_waited_too_long_is_said_and_has_a_way_on() -> None:
    colleague("registrar")
    set_first_password(
        account=account(), reason=WHY, by=MARIAM, at=timezone.now() - timedelta(days=8)
    )
    osman = signed_in(with_totp(User.objects.get(username="osman")))
    page = osman.get(page_url(account()))
    assert "It waited too long" in text_of(page)
    titles = {str(button.title) for button in page.context["buttons"]}
    assert {"Decline", "Activate", "New first password"} <= titles
    assert "Confirm" not in titles
