"""`reset_second_factor`: for staff who lost their second factor and their recovery codes."""

import logging
from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser

from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.services import Author

logger = logging.getLogger("identity.staff.accounts")


class Command(ServiceCommand):
    help = "Remove the second factor of a staff member; the next sign-in sets up another."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def act(self, options: dict[str, Any], *, by: Author, at: Any) -> Answer:
        username = options["username"]
        user = get_user_model().objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no staff member {username}.")
        removed, _ = Authenticator.objects.filter(user_id=user.pk).delete()
        logger.warning("second factor reset", extra={"username": username, "by": by.name})
        text = f"{username} sets up a new second step at the next sign-in. Removed: {removed}."
        return Answer({"username": username, "removed": removed}, text)
