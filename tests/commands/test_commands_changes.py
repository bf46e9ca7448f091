"""The commands that change what was registered: taxpayers and system users (contract 6)."""

import shlex
from datetime import UTC, datetime
from typing import Any

import pytest

from taxpayers.models import Change
from taxpayers.services.taxpayers import DEACTIVATE_TAXPAYER
from tests.support.command_line import json_output_of, output_of
from tests.support.factories import SystemUserFactory, TaxpayerFactory

pytestmark = pytest.mark.django_db

TIN, ROB = "C1234567890", "201901234567"
WHOLE = f"{TIN}:{ROB}"
# Of each: what else is given, the answer for machines, and that for people.
OF_TAXPAYERS: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "deactivate_taxpayer": (
        *((), {"is_active": False}),
        f"{WHOLE} (Before) is not active.\n{DEACTIVATE_TAXPAYER.effect}\n",
    ),
    "activate_taxpayer": ((), {}, f"{WHOLE} (Before) is active.\n"),
    "rename_taxpayer": (
        *(("--name", " After "), {"name": "After"}),
        f"{WHOLE} has the name After.\n",
    ),
}


@pytest.mark.parametrize("command", OF_TAXPAYERS)
@pytest.mark.parametrize("named", [(WHOLE,), (TIN, "--rob", ROB), (f" {TIN.lower()}:{ROB}",)])
def test_a_taxpayer_is_named_in_either_notation_and_changed_once(
    command: str, named: tuple[str, ...]
) -> None:
    more, changed, text = OF_TAXPAYERS[command]
    TaxpayerFactory.create(tin=TIN)  # another one
    is_active = command != "activate_taxpayer"
    TaxpayerFactory.create(tin=TIN, rob=ROB, name="Before", is_active=is_active)
    shown = {"taxpayer": WHOLE, "name": "Before", "is_active": True} | changed
    for _ in range(2):
        assert json_output_of(command, *named, *more) == shown
    assert output_of(command, *named, *more) == text
    change = Change.objects.get()
    assert (change.action, change.reason) == (command, "not given")
    assert change.by.endswith(" (manage.py)")


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
    user = SystemUserFactory.create(name="ERP", expires_at=datetime(2098, 1, 1, tzinfo=UTC))
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
        "return_addresses": [],
    }
    given = (*shlex.split(options), "--reason", "asked by letter")
    for _ in range(2):  # safe to repeat
        assert json_output_of("change_system_user", user.client_id, *given) == shown | changed
    change = Change.objects.get()
    expected = "extend_system_user" if "expires_at" in changed else "change_system_user"
    assert (change.action, change.reason) == (expected, "asked by letter")
