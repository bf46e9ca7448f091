"""What commands answer to machines and to people, and that each is safe to repeat (contract 6)."""

import os
import pwd
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from identity.staff.accounts.management.account_commands import COMMANDS
from identity.staff.apps import ACCOUNT_COMMANDS
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.credentials import hash_secret
from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser
from taxpayers.services.taxpayers import DEACTIVATE_TAXPAYER
from tests.support import make
from tests.support.accounts import PASSWORD, new_staff
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.factories import SUBMIT, VIEW

pytestmark = pytest.mark.django_db

TIN, ROB, AGENT = "C1234567890", "201901234567", "C9876543210"
WHOLE = f"{TIN}:{ROB}"
PAIR = ("--taxpayer", WHOLE, "--intermediary", AGENT)


@pytest.fixture
def pair() -> dict[str, Any]:
    return {
        "taxpayer": make.taxpayer(tin=TIN, rob=ROB),
        "intermediary": make.intermediary(taxpayer__tin=AGENT),
    }


def test_register_taxpayer_answers_machines_and_is_safe_to_repeat() -> None:
    expected = {"taxpayer": TIN, "name": "Acme", "is_active": True}
    for _ in range(2):
        assert json_output_of("register_taxpayer", TIN, "--name", "Acme") == expected
    assert Change.objects.count() == 1


@pytest.mark.parametrize(
    ("sudo_user", "name"),
    [
        (None, "{user} (manage.py)"),
        ("alice", "alice (sudo as {user}) (manage.py)"),
        ("root (manage.py)", "root??manage.py? (sudo as {user}) (manage.py)"),
        ("a" * 150, f"{'a' * 64} (sudo as {{user}}) (manage.py)"),
    ],
)
def test_the_history_names_the_user_of_the_machine_whatever_the_environment_says(
    sudo_user: str | None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(variable, "bob")
    monkeypatch.delenv("SUDO_USER", raising=False)
    if sudo_user is not None:
        monkeypatch.setenv("SUDO_USER", sudo_user)
    output_of("register_taxpayer", TIN, "--name", "Acme")
    user = pwd.getpwuid(os.getuid()).pw_name
    assert Change.objects.get().by == name.format(user=user)


def test_register_intermediary_gives_a_taxpayer_the_role() -> None:
    make.taxpayer(tin=AGENT, rob=ROB, name="Agent")
    arguments = ("register_intermediary", AGENT, "--rob", ROB, "--until", "2099-12-31")
    for _ in range(2):
        assert json_output_of(*arguments) == {
            "intermediary": f"{AGENT}:{ROB}",
            "is_active": True,
            "active_until": "2099-12-31T15:59:59.999999Z",
        }
    assert output_of(*arguments) == (
        f"{AGENT}:{ROB} (Agent) is an intermediary until 2099-12-31 23:59+08:00.\n"
        "Next, for each taxpayer that it acts for: manage.py grant_permission"
        f" --taxpayer TIN --intermediary {AGENT}:{ROB} --permission documents:submit\n"
    )
    assert Intermediary.objects.get().taxpayer.rob == ROB
    assert Change.objects.count() == 1


def test_grant_permission_grants_whole_days_in_the_authoritys_time_zone(
    pair: dict[str, Any],
) -> None:
    arguments = (
        *("grant_permission", *PAIR, "--permission", VIEW, SUBMIT),
        *("--from", "2098-01-01", "--until", "2098-12-31"),
    )
    for _ in range(2):
        assert json_output_of(*arguments) == {
            "taxpayer": WHOLE,
            "intermediary": AGENT,
            "permissions": [SUBMIT, VIEW],
            "valid_from": "2097-12-31T16:00:00Z",
            "valid_until": "2098-12-31T15:59:59.999999Z",
        }
    assert output_of(*arguments) == (
        f"{AGENT} may act for {TIN}:{ROB} from 2098-01-01 00:00+08:00 until 2098-12-31 23:59+08:00:"
        f" {SUBMIT}, {VIEW}.\n"
        f"Its ERP logs in with the header onbehalfof: {TIN}:{ROB}\n"
    )
    row = GrantedPermission.objects.get()
    assert (row.taxpayer, row.intermediary) == (pair["taxpayer"], pair["intermediary"])
    assert row.valid_from == datetime(2097, 12, 31, 16, tzinfo=UTC)


@pytest.mark.usefixtures("pair")
def test_revoke_permission_revokes_everything_or_the_named_codes() -> None:
    output_of("grant_permission", *PAIR, "--permission", VIEW, SUBMIT)
    assert json_output_of("revoke_permission", *PAIR, "--permission", VIEW) == {
        "taxpayer": WHOLE,
        "intermediary": AGENT,
        "revoked": [VIEW],
    }
    assert output_of("revoke_permission", *PAIR, "--permission", VIEW) == (
        f"Nothing to do: {AGENT} no longer has any of that from {TIN}:{ROB}.\n"
    )
    assert output_of("revoke_permission", *PAIR, "--reason", "contract ended") == (
        f"Revoked: {AGENT} no longer has {SUBMIT} from {TIN}:{ROB}.\n"
    )
    assert json_output_of("revoke_permission", *PAIR)["revoked"] == []
    assert not GrantedPermission.objects.filter(revoked_at=None).exists()
    reasons = Change.objects.filter(action="revoke_permission").order_by("id")
    assert [change.reason for change in reasons] == ["not given", "contract ended"]


@pytest.fixture
def secret() -> Any:
    """The only secret of a system user; in clear as `.clear`."""
    return make.credential(system_user__name="ERP")


@pytest.fixture
def client_id(secret: Any) -> str:
    name: str = secret.system_user.client_id
    return name


def test_issue_credentials_answers_machines() -> None:
    make.taxpayer(tin=TIN)
    answer = json_output_of(
        *("issue_credentials", TIN, "--name", "ERP", "--scope", "InvoicingAPI"),
        *("--expires", "2099-06-30", "--secret-expires", "2099-01-31"),
        *("--logins-per-minute", "0"),
    )
    user = SystemUser.objects.get()
    assert answer == {
        "client_id": user.client_id,
        "client_secret": answer["client_secret"],
        "secret_hint": answer["client_secret"][-4:],
        "secret_expires_at": "2099-01-31T15:59:59.999999Z",
        "allowed_networks": [],
        "environment": "test",
        "token_endpoint": "http://127.0.0.1:8000/connect/token",
        "allowed_permissions": [],
        "allowed_taxpayers": [],
        "only_on_behalf": False,
        "taxpayer": TIN,
        "name": "ERP",
        "scopes": ["InvoicingAPI"],
        "logins_per_minute": 0,
        "expires_at": "2099-06-30T15:59:59.999999Z",
    }
    assert user.credentials.get().lookup == hash_secret(answer["client_secret"])


def test_rotate_secret_answers_machines_with_both(secret: Any, client_id: str) -> None:
    end = (timezone.now() + timedelta(days=7)).replace(microsecond=0)
    moment = end.isoformat().replace("+00:00", "Z")
    answer = json_output_of(
        *("rotate_secret", client_id, "--retire-old", moment, "--secret-expires", "2099-12-31")
    )
    assert answer["client_id"] == client_id
    assert answer["secret_expires_at"] == "2099-12-31T15:59:59.999999Z"
    assert answer["old"] == [{"secret_hint": secret.hint, "secret_expires_at": moment}]
    secret.refresh_from_db()
    assert secret.expires_at == end


@pytest.mark.parametrize("form", ["{hint}", "…{hint}", "{clear}"])
def test_the_last_secret_is_revoked_by_its_hint_or_as_a_whole_with_a_warning(
    secret: Any, client_id: str, form: str
) -> None:
    given = form.format(hint=secret.hint, clear=secret.clear)
    text = output_of("revoke_secret", client_id, given, "--reason", "leaked")
    assert text.startswith(f"{secret} of {client_id} was revoked 20")
    assert "It has no other live secret, so it cannot log in." in text
    assert f"manage.py rotate_secret {client_id}\n" in text
    assert secret.clear not in text
    assert Change.objects.get().reason == "leaked"


def test_revoke_secret_is_safe_to_repeat(secret: Any, client_id: str) -> None:
    remaining = json_output_of("rotate_secret", client_id)["secret_hint"]
    first, again = (json_output_of("revoke_secret", client_id, secret.hint) for _ in range(2))
    secret.refresh_from_db()
    assert again == first
    assert first == {
        "client_id": client_id,
        "secret_hint": secret.hint,
        "revoked_at": secret.revoked_at.isoformat().replace("+00:00", "Z"),
        "live_secrets": [remaining],
    }
    assert f"It still has …{remaining}." in output_of("revoke_secret", client_id, secret.hint)


def test_revoke_secret_takes_the_live_one_of_two_with_the_same_hint(
    secret: Any, client_id: str
) -> None:
    ended = {"slot": None, "revoked_at": timezone.now(), "hint": secret.hint}
    make.credential(system_user=secret.system_user, **ended)
    output_of("revoke_secret", client_id, secret.hint)
    secret.refresh_from_db()
    assert secret.revoked_at
    line = error_of("revoke_secret", client_id, secret.hint)
    assert line == f"Several secrets end with {secret.hint}. Revoke it in the admin."


@pytest.mark.parametrize("named", [(WHOLE,), (TIN, "--rob", ROB), (f" {TIN.lower()}:{ROB}",)])
def test_a_taxpayer_is_named_in_either_notation_and_changed_once(named: tuple[str, ...]) -> None:
    make.taxpayer(tin=TIN)  # another one
    make.taxpayer(tin=TIN, rob=ROB, name="Before")
    command = ("rename_taxpayer", *named, "--name", " After ")
    for _ in range(2):
        assert json_output_of(*command) == {"taxpayer": WHOLE, "name": "After", "is_active": True}
    assert output_of(*command) == f"{WHOLE} has the name After.\n"
    change = Change.objects.get()
    assert (change.action, change.reason) == ("rename_taxpayer", "not given")
    assert change.by.endswith(" (manage.py)")
    ended = f"{WHOLE} (After) is not active.\n{DEACTIVATE_TAXPAYER.effect}\n"
    assert output_of("deactivate_taxpayer", *named) == ended


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ("--name 'ERP 2'", {"name": "ERP 2"}),
        ("--logins-per-minute 0", {"logins_per_minute": 0}),
        ("--scope Reports --scope InvoicingAPI", {"scopes": ["InvoicingAPI", "Reports"]}),
        ("--scope Reports", {"scopes": ["Reports"]}),  # all that it may ask for
        ("--expires 2099-06-30", {"expires_at": "2099-06-30T15:59:59.999999Z"}),
        ("--expires never", {"expires_at": None}),
    ],
)
def test_change_system_user_changes_what_is_given_and_nothing_else(
    settings: Any, options: str, changed: dict[str, Any]
) -> None:
    user = make.system_user(name="ERP", expires_at=datetime(2098, 1, 1, tzinfo=UTC))
    scope = {"description": "Reports", "audience": "InvoicingAPI"}
    settings.SCOPES = {**settings.SCOPES, "Reports": scope}
    shown = {
        "client_id": user.client_id,
        "login_method": "client_secret",
        "token_binding": "none",
        "name": "ERP",
        "scopes": ["InvoicingAPI"],
        "logins_per_minute": 12,
        "expires_at": "2098-01-01T00:00:00Z",
        "allowed_permissions": [],
        "allowed_taxpayers": [],
        "only_on_behalf": False,
        "return_addresses": [],
    }
    given = (*shlex.split(options), "--reason", "asked by letter")
    for _ in range(2):  # safe to repeat
        assert json_output_of("change_system_user", user.client_id, *given) == shown | changed
    change = Change.objects.get()
    expected = "extend_system_user" if "expires_at" in changed else "change_system_user"
    assert (change.action, change.reason) == (expected, "asked by letter")


def test_a_superuser_of_the_command_line_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    output_of("createsuperuser", "--no-input", "--username", "boss", "--email", "o@x.org")
    boss = StaffAccount.objects.get()
    assert (boss.is_superuser, boss.is_staff, boss.check_password(PASSWORD)) == (True, True, True)
    row = Change.objects.get()
    assert row.by.endswith(" (manage.py)")
    assert (row.action, row.object_type, row.label) == ("create_account", "staffaccount", "boss")
    assert (row.before, row.after) == ({}, {"username": "boss", "role": "superuser"})


@pytest.mark.parametrize("command", ["set_first_password", "changepassword"])
def test_a_new_password_is_a_first_password_and_recorded(command: str) -> None:
    user = new_staff("viewer", "badrul")
    answer = json_output_of(command, "badrul")
    user.refresh_from_db()
    assert user.check_password(answer["first_password"])
    assert FirstPassword.objects.get().user == user
    row = Change.objects.get()
    assert (row.action, row.reason, row.before) == ("set_first_password", "not given", {})
    assert row.after.keys() == {"first_password_expires_at"}
    assert answer["first_password"] not in str(row.after)
    assert "not shown again" in output_of(command, "badrul")


def test_manage_py_knows_every_command_of_the_table() -> None:
    assert {*ACCOUNT_COMMANDS} == COMMANDS.keys()
