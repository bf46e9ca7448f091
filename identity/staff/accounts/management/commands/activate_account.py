"""`activate_account USERNAME`: also of a superuser, which no account manager can change."""

from identity.staff.accounts.changes.accounts import ACTIVATE_ACCOUNT
from identity.staff.accounts.management.account_command import AccountCommand


class Command(AccountCommand):
    operation = ACTIVATE_ACCOUNT
    done = "{row.username} can sign in."
