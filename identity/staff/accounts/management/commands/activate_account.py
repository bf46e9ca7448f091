"""`activate_account USERNAME`: also of a superuser, which no account manager can change."""

from identity.staff.accounts.changes.accounts import ACTIVATE_ACCOUNT
from identity.staff.accounts.management.account_command import AccountOperationCommand


class Command(AccountOperationCommand):
    operation = ACTIVATE_ACCOUNT
    done = "{row.username} can sign in."
