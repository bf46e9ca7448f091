"""`set_first_password`: for staff who forgot their password."""

from datetime import datetime
from typing import Any

from identity.staff.accounts.changes.first_passwords import SET_FIRST_PASSWORD, set_first_password
from identity.staff.accounts.management.account_command import AccountCommand, first_password
from taxpayers.management.command import Output
from taxpayers.services import Author


class Command(AccountCommand):
    note = ""
    operation = SET_FIRST_PASSWORD

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        issued = set_first_password(
            account=self.find(options), reason=options["reason"], by=by, at=at
        )
        return first_password(issued)
