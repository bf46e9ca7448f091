"""`confirm_account`: an operator is the second person for what an account manager asked for."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from identity.staff.accounts.changes.second_person import CONFIRM_ACCOUNT, confirm_account
from identity.staff.accounts.management.account_command import AccountCommand
from identity.staff.models import StaffAccount, WaitingChange
from taxpayers.management.command import Output, add_reason
from taxpayers.moments import format_moment
from taxpayers.services import Author


class Command(AccountCommand):
    operation = CONFIRM_ACCOUNT
    note = "Without a user name, list what waits."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", nargs="?")
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        if not options["username"]:
            return _waiting(at)
        row = confirm_account(account=self.find(options), reason=options["reason"], by=by, at=at)
        data = {"username": row.username, "role": row.role, "is_active": row.is_active}
        state = "active" if row.is_active else "not active"
        return Output(data, f"Confirmed: {row.username} is {state}, with the role {row.role}.")


def _waiting(at: datetime) -> Output:
    rows: list[dict[str, Any]] = [
        {
            "username": row.account.get_username(),
            "action": row.action,
            "role": row.role or StaffAccount.objects.get(pk=row.account_id).role,
            "asked_by": row.asked_by,
            "asked_at": row.asked_at,
            "expires_at": row.expires_at,
            "reason": row.reason,
        }
        for row in WaitingChange.objects.select_related("account")
        if not row.is_over(at)
    ]
    lines = [
        "{username}: {action} ({role}), asked by {asked_by}: {reason}".format(**row)
        + f"; until {format_moment(row['expires_at'])}"
        for row in rows
    ]
    return Output({"waiting": rows}, "\n".join(lines) or "Nothing waits for a second person.")
