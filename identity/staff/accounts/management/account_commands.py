"""The commands for staff accounts, also of a superuser, which no account manager can change."""

from datetime import datetime
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from identity.staff.accounts.changes import accounts, second_person, sign_in
from identity.staff.accounts.roles import ROLES
from identity.staff.models import StaffAccount, WaitingChange
from taxpayers.management.command import Output
from taxpayers.management.operation_command import Named, OperationCommand, Options
from taxpayers.management.table import Commands, command
from taxpayers.moments import format_moment
from taxpayers.services import Author

_NAME = {"name": {"required": True, "help": "the full name of the person"}}
_ROLE = {"role": {"required": True, "choices": list(ROLES)}}


class _AccountCommand(OperationCommand):
    named: ClassVar[Named | None] = Named(
        *("username", StaffAccount, "There is no staff account {}."),
        metavar="username",
        column="username",
    )

    def data(self, row: StaffAccount) -> dict[str, Any]:
        return {"username": row.username, "is_active": row.is_active}


class _ChangeRole(_AccountCommand):
    operation = accounts.CHANGE_ROLE
    fields = _ROLE
    done = "{row.username} has the role {row.role}."

    def data(self, row: StaffAccount) -> dict[str, Any]:
        return {**super().data(row), "role": row.role}


class _FirstPassword(_AccountCommand):
    operation = sign_in.SET_FIRST_PASSWORD
    note = ""

    def answer(self, done: sign_in.IssuedPassword, options: Options) -> Output:
        account = done.account
        data = {"first_password": done.password, "expires_at": done.expires_at}
        text = (
            f"user name       {account.username}\n"
            f"first password  {done.password}\n"
            f"valid until     {format_moment(done.expires_at)}\n"
            "\n"
            "It is not shown again. The next sign-in asks for a new password."
        )
        if not account.is_active:
            text += "\nThe account is not active: see manage.py confirm_account."
        return Output(self.data(account) | data, text)


class _CreateAccount(_FirstPassword):
    operation = accounts.CREATE_ACCOUNT
    fields = {"username": {"flag": ""}, **_NAME, **_ROLE}
    named = None


class _ResetSecondFactor(_AccountCommand):
    operation = sign_in.RESET_SECOND_FACTOR
    note = ""

    def answer(self, done: list[str], options: Options) -> Output:
        name = options["username"]
        listed = ", ".join(done) or "nothing, there was none"
        text = f"{name} sets up a new second step at the next sign-in. Removed: {listed}."
        return Output({"username": name, "removed": len(done)}, text)


class _ConfirmAccount(_AccountCommand):
    operation = second_person.CONFIRM_ACCOUNT
    note = "Without a user name, list what waits."

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("username", nargs="?")

    def act(self, options: Options, *, by: Author, at: datetime) -> Output:
        return super().act(options, by=by, at=at) if options["username"] else _waiting(at)

    def answer(self, done: StaffAccount, options: Options) -> Output:
        data = {"username": done.username, "role": done.role, "is_active": done.is_active}
        state = "active" if done.is_active else "not active"
        return Output(data, f"Confirmed: {done.username} is {state}, with the role {done.role}.")


def _waiting(at: datetime) -> Output:
    rows: list[dict[str, Any]] = [
        {
            "username": row.account.get_username(),
            "action": row.action,
            "role": row.role or StaffAccount.objects.get(pk=row.account_id).role,
            "asked_by": row.asked_by,
            "asked_at": row.asked_at,
            "expires_at": row.expires_at,
            "reason": row.reason,
        }
        for row in WaitingChange.objects.select_related("account")
        if not row.is_over(at)
    ]
    lines = [
        "{username}: {action} ({role}), asked by {asked_by}: {reason}".format(**row)
        + f"; until {format_moment(row['expires_at'])}"
        for row in rows
    ]
    return Output({"waiting": rows}, "\n".join(lines) or "Nothing waits for a second person.")


_DECLINED = "Declined: nothing of what waited for {row.username} takes effect."
_SIGNED_OUT = "{row.username} is signed out everywhere."
COMMANDS: Commands = {
    "create_account": _CreateAccount,
    "rename_account": command(
        *(_AccountCommand, accounts.RENAME_ACCOUNT, "{row.username} has the name {row.name}."),
        fields=_NAME,
    ),
    "change_role": _ChangeRole,
    "activate_account": command(
        _AccountCommand, accounts.ACTIVATE_ACCOUNT, "{row.username} can sign in."
    ),
    "deactivate_account": command(
        _AccountCommand, accounts.DEACTIVATE_ACCOUNT, "{row.username} can no longer sign in."
    ),
    "set_first_password": _FirstPassword,
    "changepassword": _FirstPassword,  # Django's would leave no record
    "reset_second_factor": _ResetSecondFactor,
    "end_sessions": command(_AccountCommand, sign_in.END_SESSIONS, _SIGNED_OUT),
    "confirm_account": _ConfirmAccount,
    "decline_account": command(_AccountCommand, second_person.DECLINE_ACCOUNT, _DECLINED, note=""),
}
