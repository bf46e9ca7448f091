"""`rename_account USERNAME --name NAME`."""

from identity.staff.accounts.changes.accounts import RENAME_ACCOUNT
from identity.staff.accounts.management.account_command import AccountCommand


class Command(AccountCommand):
    operation = RENAME_ACCOUNT
    fields = {"name": {"required": True, "help": "the full name of the person"}}
    done = "{row.username} has the name {row.name}."
