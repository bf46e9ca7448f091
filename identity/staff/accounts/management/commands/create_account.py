"""`create_account`: the first account of the staff, or one for which no second person is there."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from identity.staff.accounts.changes.accounts import CREATE_ACCOUNT, create_account
from identity.staff.accounts.management.account_command import first_password
from identity.staff.accounts.roles import ROLES
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.services import Author


class Command(ServiceCommand):
    operation = CREATE_ACCOUNT

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", required=True, help="The full name of the person.")
        parser.add_argument("--role", required=True, choices=list(ROLES))
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        given = {name: options[name] for name in ("username", "name", "role", "reason")}
        return first_password(create_account(**given, by=by, at=at))
