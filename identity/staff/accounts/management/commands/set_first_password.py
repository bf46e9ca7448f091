"""`set_first_password`: for staff who forgot their password."""

from datetime import datetime
from typing import Any

from identity.staff.accounts.changes.first_passwords import set_first_password
from identity.staff.accounts.management.account_command import AccountCommand
from identity.staff.models import StaffAccount
from taxpayers.management.command import Answer
from taxpayers.moments import format_moment
from taxpayers.services import Author


class Command(AccountCommand):
    help = "Give a staff member a generated password, shown once, to be replaced at the sign-in."

    def change(
        self, account: StaffAccount, options: dict[str, Any], *, by: Author, at: datetime
    ) -> Answer:
        issued = set_first_password(account=account, reason=options["reason"], by=by, at=at)
        data = {
            "username": account.username,
            "first_password": issued.password,
            "expires_at": issued.expires_at,
        }
        text = (
            f"user name       {account.username}\n"
            f"first password  {issued.password}\n"
            f"valid until     {format_moment(issued.expires_at)}\n"
            "\n"
            "It is not shown again. The next sign-in asks for a new password."
        )
        return Answer(data, text)
