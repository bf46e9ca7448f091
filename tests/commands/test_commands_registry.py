"""The commands for taxpayers, intermediaries and permissions (contract 6)."""

import os
import pwd
from datetime import UTC, datetime
from typing import Any

import pytest

from taxpayers.models import Change, GrantedPermission, Intermediary
from tests.support.command_line import json_output_of, output_of
from tests.support.factories import SUBMIT, VIEW, IntermediaryFactory, TaxpayerFactory

pytestmark = pytest.mark.django_db

TIN, ROB, AGENT = "C1234567890", "201901234567", "C9876543210"
PAIR = ("--taxpayer", f"{TIN}:{ROB}", "--intermediary", AGENT)


@pytest.fixture
def pair() -> dict[str, Any]:
    return {
        "taxpayer": TaxpayerFactory.create(tin=TIN, rob=ROB),
        "intermediary": IntermediaryFactory.create(taxpayer__tin=AGENT),
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
    TaxpayerFactory.create(tin=AGENT, rob=ROB, name="Agent")
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
            "taxpayer": f"{TIN}:{ROB}",
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
        "taxpayer": f"{TIN}:{ROB}",
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
