"""`decline_account USERNAME`: an operator declines what an account manager asked for."""

from identity.staff.accounts.changes.second_person import DECLINE_ACCOUNT
from identity.staff.accounts.management.account_command import AccountCommand


class Command(AccountCommand):
    operation = DECLINE_ACCOUNT
    note = ""
    done = "Declined: nothing of what waited for {row.username} takes effect."
