"""`revoke_secrets CLIENT_ID…|--file FILE|--all [--before DATE] --yes`: what a leak has touched."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import Error

from taxpayers.management.arguments import parse_start
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.management.database_errors import exit_code
from taxpayers.management.find_records import add_system_users, read_system_users, with_bar
from taxpayers.services import Author, ServiceError, revoke_credential
from taxpayers.services.credential_changes import REVOKE_SECRETS


class Command(ServiceCommand):
    operation = REVOKE_SECRETS
    note = "Every valid one of the system users that are named, or of all. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_system_users(parser)
        text = "only those that were created before this day or moment"
        parser.add_argument("--before", metavar="DATE", type=parse_start, help=text)
        parser.add_argument("--yes", action="store_true", help="without it, only count them")
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        owners, before = read_system_users(options), options["before"] or at
        chosen = [
            row
            for owner in with_bar(owners, "system users")
            for row in owner.credentials.all()
            if row.is_live(at) and row.created_at < before
        ]
        if not options["yes"]:
            raise CommandError(
                f"This would revoke {len(chosen)} secrets, keys and certificates of {len(owners)}"
                " system users. Nothing has been revoked. To do it, say --yes."
            )
        for done, row in enumerate(with_bar(chosen, "credentials")):
            try:
                revoke_credential(credential=row, reason=options["reason"], by=by, at=at)
            except (Error, ServiceError) as fault:
                code = exit_code(fault) if isinstance(fault, Error) else 1
                line = f"Stopped after {done} of {len(chosen)}, which are revoked: repeat it."
                raise CommandError(line, returncode=code) from fault
        return Output({"revoked": len(chosen)}, f"Revoked: {len(chosen)}.")
