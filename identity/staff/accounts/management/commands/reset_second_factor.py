"""`reset_second_factor`: for staff who lost their second factor and their recovery codes."""

from datetime import datetime
from typing import Any

from identity.staff.accounts.changes.second_steps import RESET_SECOND_FACTOR, reset_second_factor
from identity.staff.accounts.management.account_command import AccountCommand
from taxpayers.management.command import Output
from taxpayers.services import Author


class Command(AccountCommand):
    note = ""
    operation = RESET_SECOND_FACTOR

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        account = self.find(options)
        removed = reset_second_factor(account=account, reason=options["reason"], by=by, at=at)
        name = account.username
        listed = ", ".join(removed) or "nothing, there was none"
        text = f"{name} sets up a new second step at the next sign-in. Removed: {listed}."
        return Output({"username": name, "removed": len(removed)}, text)
