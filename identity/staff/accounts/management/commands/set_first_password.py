"""`set_first_password`: for staff who forgot their password."""

from datetime import datetime
from typing import Any

from identity.staff.accounts.changes.first_passwords import SET_FIRST_PASSWORD, set_first_password
from identity.staff.accounts.management.account_command import AccountCommand, first_password
from identity.staff.models import StaffAccount
from taxpayers.management.command import Output
from taxpayers.services import Author


class Command(AccountCommand):
    operation = SET_FIRST_PASSWORD

    def change(
        self, account: StaffAccount, options: dict[str, Any], *, by: Author, at: datetime
    ) -> Output:
        issued = set_first_password(account=account, reason=options["reason"], by=by, at=at)
        return first_password(issued)
