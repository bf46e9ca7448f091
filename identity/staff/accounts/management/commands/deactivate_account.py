"""`deactivate_account`: at once, also a superuser, which no account manager can change."""

from datetime import datetime
from typing import Any

from identity.staff.accounts.changes.accounts import set_account_active
from identity.staff.accounts.management.account_command import AccountCommand
from identity.staff.models import StaffAccount
from taxpayers.management.command import Answer
from taxpayers.services import Author


class Command(AccountCommand):
    help = "Sign a staff member out and refuse every further sign-in."

    def change(
        self, account: StaffAccount, options: dict[str, Any], *, by: Author, at: datetime
    ) -> Answer:
        set_account_active(account=account, is_active=False, reason=options["reason"], by=by, at=at)
        name = account.username
        return Answer({"username": name, "is_active": False}, f"{name} can no longer sign in.")
