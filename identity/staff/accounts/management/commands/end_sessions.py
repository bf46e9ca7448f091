"""`end_sessions USERNAME`: signs a member of staff out everywhere."""

from identity.staff.accounts.changes.sessions import END_SESSIONS
from identity.staff.accounts.management.account_command import AccountCommand


class Command(AccountCommand):
    operation = END_SESSIONS
    done = "{row.username} is signed out everywhere."
