"""`create_account`: the first account of the staff, or one for which no second person is there."""

from django.core.management.base import CommandParser

from identity.staff.accounts.changes.accounts import CREATE_ACCOUNT
from identity.staff.accounts.changes.first_passwords import IssuedPassword
from identity.staff.accounts.management.account_command import AccountCommand, first_password
from identity.staff.accounts.roles import ROLES
from taxpayers.management.command import Output
from taxpayers.management.operation_command import Options


class Command(AccountCommand):
    operation = CREATE_ACCOUNT
    fields = ("username", "name", "role")
    note = ""

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="The full name of the person.")
        parser.add_argument("--role", required=True, choices=list(ROLES))

    def answer(self, done: IssuedPassword, options: Options) -> Output:
        return first_password(done)
