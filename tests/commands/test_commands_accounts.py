"""The commands for staff accounts do what the pages do, and are recorded in the history."""

import pytest

from identity.staff.accounts.management.account_commands import COMMANDS
from identity.staff.apps import ACCOUNT_COMMANDS
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.models import Change
from tests.support.accounts import PASSWORD, new_staff
from tests.support.command_line import error_of, json_output_of, output_of

pytestmark = pytest.mark.django_db


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


@pytest.mark.parametrize("command", ["set_first_password", "reset_second_factor"])
def test_an_account_that_does_not_exist_is_one_line(command: str) -> None:
    assert error_of(command, "nobody") == "There is no staff account nobody."


def test_manage_py_knows_every_command_of_the_table() -> None:
    assert {*ACCOUNT_COMMANDS} == COMMANDS.keys()
