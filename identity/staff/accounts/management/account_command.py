"""The base of the commands that change one staff account."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from identity.staff.models import StaffAccount
from taxpayers.management.command import NO_REASON, Answer, ServiceCommand
from taxpayers.services import Author


class AccountCommand(ServiceCommand):
    """Finds the account by its user name; a command overrides `change`."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--reason", default=NO_REASON, help="Saved in the history.")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        account = StaffAccount.objects.filter(username=options["username"]).first()
        if account is None:
            raise CommandError(f"There is no staff account {options['username']}.")
        return self.change(account, options, by=by, at=at)

    def change(
        self, account: StaffAccount, options: dict[str, Any], *, by: Author, at: datetime
    ) -> Answer:
        """Do the work. Raise ServiceError if it cannot be done."""
        raise NotImplementedError
