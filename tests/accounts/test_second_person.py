"""No person makes themselves able to register and to issue: a second one confirms, or it stops."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from identity.staff.accounts.changes.accounts import change_role, create_account, set_account_active
from identity.staff.accounts.changes.second_person import LIFETIME, confirm_account, decline_account
from identity.staff.accounts.changes.sign_in import (
    IssuedPassword,
    reset_second_factor,
    set_first_password,
)
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

    service: Callable[..., Any]
    role: str | None
    name: str
    given: dict[str, Any] = field(default_factory=dict)
    gives: str = "registrar"  # the role after it

    def __str__(self) -> str:
        return f"{self.name} {self.role or ''}".strip()

    def prepare(self) -> None:
        if self.role is not None:
            colleague(self.role, is_active="is_active" not in self.given)

    def ask(self, by: Author, at: Any = AT) -> Any:
        about = {"account": account()} if self.role else {"username": "badrul", "name": "Badrul"}
        return self.service(**about, **self.given, reason=WHY, by=by, at=at)


NEW = Asked(create_account, None, "create_account", {"role": "registrar"})
OFFICER = {"role": "security officer"}
PASSWORD_OF = [
    Asked(set_first_password, role, "set_first_password", gives=role)
    for role in ("registrar", "auditor", ACCOUNT_MANAGER, "viewer")
]
RESET_OF = [
    Asked(reset_second_factor, role, "reset_second_factor", gives=role)
    for role in ("security officer", "viewer")
]
ACTIVATE_OF = [
    Asked(set_account_active, role, "activate_account", {"is_active": True}, role)
    for role in ("registrar", "viewer")
]
CLOSING = [NEW, *PASSWORD_OF[:3], RESET_OF[0], ACTIVATE_OF[0]]
ROLES_ASKED = [
    Asked(change_role, role, "change_role", OFFICER, "security officer")
    for role in ("viewer", "registrar")
]
ASKED = [*CLOSING, *ROLES_ASKED]
NO_DUTY = [PASSWORD_OF[3], RESET_OF[1], ACTIVATE_OF[1]]
TO_OFFICER = ROLES_ASKED[1]


each = pytest.mark.parametrize("asked", ASKED, ids=str)


def state() -> tuple[bool, str]:
    row = account()
    return row.is_active, row.role


def confirm(by: Author, at: Any = AT, **shown: Any) -> StaffAccount:
    return confirm_account(account=account(), reason="Met them", by=by, at=at, **shown)


@each
@pytest.mark.parametrize("second", [OSMAN, OPERATOR], ids=["manager", "operator"])
def test_it_takes_effect_when_a_second_person_confirms(asked: Asked, second: Author) -> None:
    asked.prepare()
    asked.ask(MARIAM)
    before = state()
    is_closed = asked in CLOSING
    assert before == (not is_closed, asked.gives if is_closed else asked.role)
    for who in (MARIAM, Author("badrul")):
        with pytest.raises(ServiceError, match=r"You asked for this|your own account"):
            confirm(who)
    assert state() == before
    confirm(second)
    assert state() == (True, asked.gives)
    assert not WaitingChange.objects.exists()
    request, confirmation = Change.objects.order_by("pk")
    assert (request.action, request.by, request.reason) == (asked.name, "mariam", WHY)
    assert request.after["waits_until"] == (AT + LIFETIME).isoformat()
    assert (confirmation.action, confirmation.by) == ("confirm_account", second.name)
    assert (confirmation.reason, confirmation.after["asked_by"]) == ("Met them", "mariam")
    with pytest.raises(ServiceError, match="Nothing waits"):
        confirm(OPERATOR)


@pytest.mark.parametrize(
    ("asked", "by", "is_required"),
    [
        *((asked, OPERATOR, True) for asked in ASKED),
        *((asked, MARIAM, False) for asked in ASKED),
        *((asked, MARIAM, True) for asked in NO_DUTY),
    ],
    ids=str,
)
def test_nothing_waits_for_an_operator_where_none_is_required_and_without_a_duty(
    asked: Asked, by: Author, is_required: bool, live: Settings
) -> None:
    live.SECOND_PERSON_REQUIRED = is_required
    asked.prepare()
    asked.ask(by)
    assert (state(), WaitingChange.objects.count()) == ((True, asked.gives), 0)


@pytest.mark.parametrize("give", ["own permission", "role that waits", "superuser"])
def test_a_duty_is_seen_wherever_it_comes_from(give: str) -> None:
    row = colleague("viewer", is_superuser=give == "superuser")
    if give == "own permission":
        row.user_permissions.add(Permission.objects.get(codename="import_registry"))
    if give == "role that waits":
        TO_OFFICER.ask(OSMAN)
    new_staff("", "boss")
    PASSWORD_OF[0].ask(Author("boss"))
    assert not account().is_active


@pytest.mark.parametrize("asked", CLOSING, ids=str)
def test_no_way_in_is_open_before(asked: Asked) -> None:
    asked.prepare()
    session = signed_in(account()) if asked.role and account().is_active else Client()
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
    (asked if asked in ROLES_ASKED else ACTIVATE_OF[0]).ask(MARIAM, late)
    confirm(OSMAN, at=late)
    assert state() == (True, asked.gives)


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
    if isinstance(issued, IssuedPassword):  # its sender knows it
        assert authenticate(None, username="badrul", password=issued.password) is None
    row = Change.objects.latest("pk")
    assert (row.action, row.by, row.before["asked_by"]) == ("decline_account", by.name, "mariam")


def test_only_what_was_seen_is_confirmed() -> None:
    colleague("registrar")
    PASSWORD_OF[0].ask(MARIAM)
    seen = frozenset([str(WaitingChange.objects.get().pk)])
    RESET_OF[0].ask(OSMAN)
    with pytest.raises(ServiceError, match="Something else waits"):
        confirm(OPERATOR, shown=seen)
    confirm(MARIAM)
    assert not account().is_active
    with pytest.raises(ServiceError, match="You asked for this"):
        confirm(MARIAM)
    confirm(OSMAN)
    TO_OFFICER.ask(MARIAM)  # and to take a duty away needs no second person
    change_role(account=account(), role="viewer", reason=WHY, by=MARIAM, at=AT)
    assert (state(), WaitingChange.objects.count()) == ((True, "viewer"), 0)


def test_a_superuser_does_not_count_as_the_last_account_manager() -> None:
    new_staff("", "boss")
    end: dict[str, Any] = {"is_active": False, "reason": WHY, "by": OPERATOR, "at": AT}
    set_account_active(account=account("mariam"), **end)
    with pytest.raises(ServiceError, match="the last active account"):
        set_account_active(account=account("osman"), **end)
    assert json_output_of("deactivate_account", "boss")["is_active"] is False


def test_an_operator_creates_the_first_account_without_a_superuser() -> None:
    User.objects.all().delete()
    arguments = ("create_account", "nora", "--name", "Nora", "--role", ACCOUNT_MANAGER)
    answer = json_output_of(*arguments)
    assert answer["is_active"]
    assert authenticate(None, username="nora", password=answer["first_password"]) is not None
    assert Change.objects.get().after["role"] == ACCOUNT_MANAGER
    assert "invalid choice" in error_of(*arguments[:-1], "superuser")


def test_an_operator_confirms_for_a_manager_who_has_no_colleague() -> None:
    NEW.ask(MARIAM)
    [row] = json_output_of("confirm_account")["waiting"]
    assert (row["username"], row["asked_by"], row["role"]) == ("badrul", "mariam", "registrar")
    assert "create_account (registrar), asked by mariam" in output_of("confirm_account")
    confirmed = output_of("confirm_account", "badrul")
    assert confirmed == "Confirmed: badrul is active, with the role registrar.\n"
    PASSWORD_OF[0].ask(MARIAM)
    assert json_output_of("confirm_account", "badrul")["is_active"]
    assert output_of("confirm_account") == "Nothing waits for a second person.\n"
    assert error_of("confirm_account", "badrul") == "Nothing waits for a second person."


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
    user = with_totp(new_staff(roles[0], "both", password=None))
    user.groups.set(Group.objects.filter(name__in=roles))
    user.user_permissions.set(Permission.objects.filter(codename=also))
    assert_only_reads(user)
    client = signed_in(user)
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


def assert_only_reads(user: User) -> None:
    """What each address needs: tests/every_address/test_staff.py."""
    held = ModelBackend().get_all_permissions(user)
    reads = {name for name in held if ".view_" in name}
    read = StaffAccount.objects.get(pk=user.pk)
    assert {name for name in held if read.has_perm(name)} == reads < held


def test_a_superuser_only_reads_unless_no_second_person_is_required(live: Settings) -> None:
    client = staff_client()
    assert_only_reads(User.objects.get(username="aminah"))
    url = task_url(SigningKey, "rotate_signing_key")
    assert "A superuser can only read here" in text_of(client.get("/admin/"))
    assert client.get(url).status_code == 403
    live.SECOND_PERSON_REQUIRED = False
    assert "A superuser can only read" not in text_of(client.get("/admin/"))
    assert client.get(url).status_code == 200


def test_one_manager_asks_on_the_page_and_another_one_confirms() -> None:
    mariam, osman = (signed_in(with_totp(account(n))) for n in ("mariam", "osman"))
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
    assert "Confirmed what another person asked for: " in text_of(done)
    assert state() == (True, "registrar")
    for task, values, says in (
        ("change_role", OFFICER, "something waits for a second person"),
        ("reset_second_factor", {}, "something waits for a second person"),
    ):
        with_totp(account()) if not values else None
        url = task_url(account(), task)
        assert "a second person must confirm this" in text_of(mariam.get(url))
        sent = opened(mariam, url) | {"reason": WHY} | values
        assert says in text_of(mariam.post(url, sent, follow=True))
        decline = task_url(account(), "decline_account")
        assert "Declined what waited" in text_of(mariam.post(decline, {"reason": WHY}, follow=True))
        assert not WaitingChange.objects.exists()


def test_what_waited_too_long_is_said_and_has_a_way_on() -> None:
    colleague("registrar")
    set_first_password(
        account=account(), reason=WHY, by=MARIAM, at=timezone.now() - timedelta(days=8)
    )
    osman = signed_in(with_totp(account("osman")))
    page = osman.get(page_url(account()))
    assert "It waited too long" in text_of(page)
    titles = {str(button.title) for button in page.context["buttons"]}
    assert {"Decline", "Activate", "New first password"} <= titles
    assert "Confirm" not in titles
