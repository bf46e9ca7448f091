"""`change_role USERNAME --role ROLE`."""

from typing import Any

from identity.staff.accounts.changes.accounts import CHANGE_ROLE
from identity.staff.accounts.management.account_command import AccountCommand
from identity.staff.accounts.roles import ROLES
from identity.staff.models import StaffAccount


class Command(AccountCommand):
    operation = CHANGE_ROLE
    fields = {"role": {"required": True, "choices": list(ROLES)}}
    done = "{row.username} has the role {row.role}."

    def data(self, row: StaffAccount) -> dict[str, Any]:
        return {**super().data(row), "role": row.role}
