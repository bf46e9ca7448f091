"""The commands that change what was registered: taxpayers and system users (contract 6)."""

import shlex
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.management import load_command_class
from django.test import Client

from taxpayers.models import Change, SystemUser, Taxpayer
from taxpayers.services.taxpayers import DEACTIVATE_TAXPAYER
from tests.support.command_line import json_output_of, output_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import SystemUserFactory, TaxpayerFactory
from tests.support.staff import opened, staff_client, task_url

pytestmark = pytest.mark.django_db

TIN, ROB = "C1234567890", "201901234567"
WHY = ("--reason", "asked by letter")


def last_change() -> dict[str, Any]:
    """What the history stores of the last change, but for when, who and from where."""
    row = Change.objects.latest("pk")
    assert row.by.endswith(" (manage.py)")
    names = ("action", "object_type", "object_id", "label", "reason", "before", "after")
    return {name: getattr(row, name) for name in names}


# --- The contract's table -------------------------------------------------------------------------

OPTIONS = {
    "demo": {"--port"},
    "register_taxpayer": {"--rob", "--name"},
    "register_intermediary": {"--rob", "--until"},
    "grant_permission": {"--taxpayer", "--intermediary", "--permission", "--from", "--until"},
    "revoke_permission": {"--taxpayer", "--intermediary", "--permission"},
    "issue_credentials": {
        *("--name", "--scope", "--expires", "--secret-expires", "--logins-per-minute"),
    },
    "rotate_secret": {"--secret-expires", "--retire-old"},
    "revoke_secret": set[str](),
    "block_system_user": {"--reason"},
    "unblock_system_user": {"--reason"},
    "explain_login": set[str](),
    "import_registry": set[str](),
    "rotate_signing_key": {"--alg", "--compromised"},
    "prune_logins": {"--older-than", "--yes"},
    "deactivate_taxpayer": {"--rob"},
    "activate_taxpayer": {"--rob"},
    "rename_taxpayer": {"--rob"},
    "change_system_user": {"--name", "--logins-per-minute", "--scope", "--expires"},
}
_APPS = {
    "demo": "identity.demo",
    **dict.fromkeys(("explain_login", "rotate_signing_key", "prune_logins"), "tokens"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_command_has_the_options_of_the_contract(name: str) -> None:
    command = load_command_class(_APPS.get(name, "taxpayers"), name)
    parser = command.create_parser("manage.py", name)
    given = {option for action in parser._actions for option in action.option_strings}
    assert {*OPTIONS[name], "--json"} <= given


# --- deactivate_taxpayer, activate_taxpayer -------------------------------------------------------


def test_deactivate_taxpayer_refuses_its_logins_until_activate_taxpayer(erp: Erp) -> None:
    row = erp.system_user.taxpayer
    assert erp.login().status_code == 200
    assert output_of("deactivate_taxpayer", erp.tin, *WHY) == (
        f"{row.identifier} ({row.name}) is not active.\n{DEACTIVATE_TAXPAYER.effect}\n"
    )
    assert erp.login().status_code == 400
    assert output_of("activate_taxpayer", erp.tin, *WHY) == (
        f"{row.identifier} ({row.name}) is active.\n"
    )
    assert erp.login().status_code == 200


# --- rename_taxpayer ------------------------------------------------------------------------------


def test_rename_taxpayer_changes_the_name_alone() -> None:
    row = TaxpayerFactory.create(tin=TIN, rob=ROB, name="Before")
    arguments = ("rename_taxpayer", TIN, "--rob", ROB, "--name", " After ", *WHY)
    for _ in range(2):
        answer = json_output_of(*arguments)
        assert answer == {"taxpayer": f"{TIN}:{ROB}", "name": "After", "is_active": True}
    assert output_of(*arguments) == f"{TIN}:{ROB} has the name After.\n"
    assert Change.objects.count() == 1
    assert last_change() == {
        "action": "rename_taxpayer",
        "object_type": "taxpayer",
        "object_id": str(row.pk),
        "label": f"{TIN}:{ROB} After",
        "reason": "asked by letter",
        "before": {"name": "Before"},
        "after": {"name": "After"},
    }


# --- All of taxpayers -----------------------------------------------------------------------------

OF_TAXPAYERS = {
    "deactivate_taxpayer": (),
    "activate_taxpayer": (),
    "rename_taxpayer": ("--name", "After"),
}


@pytest.mark.parametrize("command", OF_TAXPAYERS)
@pytest.mark.parametrize(
    "named", [(f"{TIN}:{ROB}",), (TIN, "--rob", ROB), (f" {TIN.lower()}:{ROB}",)]
)
def test_a_taxpayer_is_named_in_either_notation(command: str, named: tuple[str, ...]) -> None:
    TaxpayerFactory.create(tin=TIN)  # another one
    TaxpayerFactory.create(tin=TIN, rob=ROB)
    answer = json_output_of(command, *named, *OF_TAXPAYERS[command])
    assert answer["taxpayer"] == f"{TIN}:{ROB}"


@pytest.mark.parametrize("command", OF_TAXPAYERS)
def test_without_a_reason_the_history_says_that_none_was_given(command: str) -> None:
    TaxpayerFactory.create(tin=TIN, is_active=command != "activate_taxpayer")
    output_of(command, TIN, *OF_TAXPAYERS[command])
    assert last_change()["reason"] == "not given"


# --- change_system_user ---------------------------------------------------------------------------


@pytest.fixture
def user() -> SystemUser:
    return SystemUserFactory.create(name="ERP", expires_at=datetime(2098, 1, 1, tzinfo=UTC))


def as_shown(user: SystemUser, **changes: Any) -> dict[str, Any]:
    """The answer for machines about a system user of the fixture, with these changes."""
    return {
        "client_id": user.client_id,
        "auth_method": "client_secret",
        "token_binding": "none",
        "name": "ERP",
        "scopes": ["InvoicingAPI"],
        "logins_per_minute": 12,
        "expires_at": "2098-01-01T00:00:00Z",
        "allowed_permissions": [],
        "allowed_taxpayers": [],
        **changes,
    }


BEFORE, END = "2098-01-01T00:00:00+00:00", "2099-06-30T15:59:59.999999"


@pytest.mark.parametrize(
    ("options", "shown", "before", "after"),
    [
        ("--name 'ERP 2'", {"name": "ERP 2"}, {"name": "ERP"}, {"name": "ERP 2"}),
        (
            "--logins-per-minute 0",
            *({"logins_per_minute": 0}, {"logins_per_minute": 12}, {"logins_per_minute": 0}),
        ),
        (
            *("--scope Reports --scope InvoicingAPI", {"scopes": ["InvoicingAPI", "Reports"]}),
            *({"scopes": "InvoicingAPI"}, {"scopes": "InvoicingAPI Reports"}),
        ),
        (  # all that it may ask for
            *("--scope Reports", {"scopes": ["Reports"]}),
            *({"scopes": "InvoicingAPI"}, {"scopes": "Reports"}),
        ),
        (
            *("--expires 2099-06-30", {"expires_at": f"{END}Z"}),
            *({"expires_at": BEFORE}, {"expires_at": f"{END}+00:00"}),
        ),
        ("--expires never", {"expires_at": None}, {"expires_at": BEFORE}, {"expires_at": None}),
    ],
)
def test_change_system_user_changes_what_is_given_and_nothing_else(
    user: SystemUser,
    settings: Any,
    options: str,
    shown: dict[str, Any],
    before: dict[str, Any],
    after: dict[str, Any],
) -> None:
    scope = {"description": "Reports", "audience": "InvoicingAPI"}
    settings.SCOPES = {**settings.SCOPES, "Reports": scope}
    for _ in range(2):  # safe to repeat
        given = shlex.split(options)
        answer = json_output_of("change_system_user", user.client_id, *given, *WHY)
        assert answer == as_shown(user, **shown)
    assert Change.objects.count() == 1
    assert last_change() == {
        "action": "extend_system_user" if "expires_at" in after else "change_system_user",
        "object_type": "systemuser",
        "object_id": str(user.pk),
        "label": f"{user.client_id} {shown.get('name', 'ERP')}",
        "reason": "asked by letter",
        "before": before,
        "after": after,
    }


def test_change_system_user_changes_everything_at_once_and_shows_it(user: SystemUser) -> None:
    text = output_of(
        *("change_system_user", user.client_id, "--name", "ERP 2", "--logins-per-minute", "60"),
        *("--scope", "InvoicingAPI", "--expires", "2099-12-31"),
    )
    assert text == (
        f"{user.client_id} (ERP 2): 60 logins per minute, until 2099-12-31 23:59,"
        " scopes InvoicingAPI.\n"
    )
    changes = Change.objects.order_by("pk").values_list("action", "reason")
    assert list(changes) == [
        ("change_system_user", "not given"),
        ("extend_system_user", "not given"),
    ]
    text = output_of(
        "change_system_user", user.client_id, "--logins-per-minute", "0", "--expires", "never"
    )
    assert text == f"{user.client_id} (ERP 2): no limit, no end date, scopes InvoicingAPI.\n"


def test_a_change_takes_effect_at_the_next_login() -> None:
    erp = new_erp()
    output_of("change_system_user", erp.client_id, "--logins-per-minute", "1")
    assert [erp.login().status_code for _ in range(2)] == [200, 429]
    output_of("change_system_user", erp.client_id, "--logins-per-minute", "0")
    other = new_erp(expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert other.login().status_code == 400
    output_of("change_system_user", other.client_id, "--expires", "never")
    assert other.login().status_code == 200


def test_the_help_says_how_an_end_date_is_removed() -> None:
    command = load_command_class("taxpayers", "change_system_user")
    text = " ".join(command.create_parser("manage.py", "change_system_user").format_help().split())
    assert "never: remove it, so that it does not expire" in text


# --- The same as the staff's task -----------------------------------------------------------------


def _history() -> list[Any]:
    names = ("action", "object_type", "label", "reason", "before", "after")
    return list(Change.objects.order_by("pk").values_list(*names))


def _as_staff(client: Client, row: Any, task: str, form: dict[str, Any]) -> None:
    url = task_url(row, task)
    assert client.post(url, {**opened(client, url), **form}).status_code == 302


def test_a_command_leaves_the_history_of_the_staffs_task_of_its_name() -> None:
    registrar, officer = staff_client("registrar", "siti"), staff_client("security officer", "ravi")
    taxpayer = TaxpayerFactory.create(tin=TIN, name="Acme")
    user = SystemUserFactory.create(taxpayer=taxpayer, name="ERP")
    why = {"reason": "asked by letter"}
    form = {"name": "ERP 2", "scopes": ["InvoicingAPI"], "logins_per_minute": "60", **why}
    _as_staff(registrar, taxpayer, "rename_taxpayer", {"name": "Acme 2", **why})
    _as_staff(registrar, taxpayer, "deactivate_taxpayer", why)
    _as_staff(registrar, taxpayer, "activate_taxpayer", why)
    _as_staff(officer, user, "change_system_user", form)
    _as_staff(officer, user, "end_system_user_earlier", {"expires": "2099-12-31", **why})
    by_staff = _history()

    Change.objects.all().delete()
    Taxpayer.objects.update(name="Acme")
    SystemUser.objects.update(name="ERP", logins_per_minute=12, expires_at=None)
    output_of("rename_taxpayer", TIN, "--name", "Acme 2", *WHY)
    output_of("deactivate_taxpayer", TIN, *WHY)
    output_of("activate_taxpayer", TIN, *WHY)
    output_of(
        *("change_system_user", user.client_id, "--name", "ERP 2", "--logins-per-minute", "60"),
        *("--scope", "InvoicingAPI", "--expires", "2099-12-31", *WHY),
    )
    assert _history() == by_staff
    assert len(by_staff) == 5
