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
    fields = {
        "username": {"flag": ""},
        "name": {"required": True, "help": "The full name of the person."},
        "role": {"required": True, "choices": list(ROLES)},
    }
    note = ""

    def add_record(self, parser: CommandParser) -> None:
        """It is new."""

    def answer(self, done: IssuedPassword, options: Options) -> Output:
        return first_password(done)
