"""What the commands for staff accounts have in common."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from identity.staff.accounts.changes.first_passwords import IssuedPassword
from identity.staff.models import StaffAccount
from taxpayers.management.command import Output
from taxpayers.management.operation_command import OperationCommand
from taxpayers.moments import format_moment


class AccountCommand(OperationCommand):
    """`USERNAME`."""

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def find(self, options: dict[str, Any]) -> StaffAccount:
        account = StaffAccount.objects.filter(username=options["username"]).first()
        if account is None:
            raise CommandError(f"There is no staff account {options['username']}.")
        return account

    def data(self, row: StaffAccount) -> dict[str, Any]:
        return {"username": row.username, "is_active": row.is_active}


def first_password(issued: IssuedPassword) -> Output:
    """The answer with a first password, which is shown once."""
    account = issued.account
    data = {
        "username": account.username,
        "is_active": account.is_active,
        "first_password": issued.password,
        "expires_at": issued.expires_at,
    }
    text = (
        f"user name       {account.username}\n"
        f"first password  {issued.password}\n"
        f"valid until     {format_moment(issued.expires_at)}\n"
        "\n"
        "It is not shown again. The next sign-in asks for a new password."
    )
    if not account.is_active:
        text += "\nThe account is not active: see manage.py confirm_account."
    return Output(data, text)
