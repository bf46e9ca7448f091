"""`deactivate_account USERNAME`: also of a superuser, which no account manager can change."""

from identity.staff.accounts.changes.accounts import DEACTIVATE_ACCOUNT
from identity.staff.accounts.management.account_command import AccountCommand


class Command(AccountCommand):
    operation = DEACTIVATE_ACCOUNT
    done = "{row.username} can no longer sign in."
