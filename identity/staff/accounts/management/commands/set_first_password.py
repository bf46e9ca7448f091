"""`set_first_password`: for staff who forgot their password."""

from identity.staff.accounts.changes.first_passwords import SET_FIRST_PASSWORD, IssuedPassword
from identity.staff.accounts.management.account_command import AccountCommand, first_password
from taxpayers.management.command import Output
from taxpayers.management.operation_command import Options


class Command(AccountCommand):
    operation = SET_FIRST_PASSWORD
    note = ""

    def answer(self, done: IssuedPassword, options: Options) -> Output:
        return first_password(done)
