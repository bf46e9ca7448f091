"""`rotate_secret CLIENT_ID [--secret-expires DATE] [--retire-old DATE]` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import last_moment
from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.management.lookups import find_system_user
from taxpayers.management.secret_once import secret_data, secret_text
from taxpayers.services import Author, issue_secret
from taxpayers.validation import format_moment


class Command(ServiceCommand):
    help = "Give a system user a second secret, so that its ERP changes over without downtime."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument(
            "--secret-expires", metavar="DATE", type=last_moment, help="the new secret's last day"
        )
        parser.add_argument(
            "--retire-old", metavar="DATE", type=last_moment, help="the old secret's last day"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        issued = issue_secret(
            system_user=find_system_user(options["client_id"]),
            expires_at=options["secret_expires"],
            retire_old_at=options["retire_old"],
            by=by,
            at=at,
        )
        secrets = issued.system_user.secrets.exclude(pk=issued.secret.pk).filter(slot__isnull=False)
        old = [{"secret_hint": s.hint, "secret_expires_at": s.expires_at} for s in secrets]
        works = "".join(
            f"\nThe old secret {s} works until {format_moment(s.expires_at)}."
            f" Once its ERP has changed over:"
            f" manage.py revoke_secret {issued.system_user.client_id} {s.hint}"
            for s in secrets
        )
        return Answer(secret_data(issued) | {"old": old}, secret_text(issued) + works)
