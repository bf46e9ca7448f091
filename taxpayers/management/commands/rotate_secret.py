"""`rotate_secret CLIENT_ID [--secret-expires DATE] [--retire-old DATE] …` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import parse_end
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.management.find_records import find_system_user
from taxpayers.management.limit_options import add_network_options, read_networks
from taxpayers.moments import format_moment
from taxpayers.secret_once import secret_data, secret_text
from taxpayers.services import Author, issue_secret
from taxpayers.services.credential_changes import ROTATE_SECRET


class Command(ServiceCommand):
    operation = ROTATE_SECRET

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument(
            "--secret-expires", metavar="DATE", type=parse_end, help="last day of the new secret"
        )
        parser.add_argument(
            "--retire-old", metavar="DATE", type=parse_end, help="last day of the old secret"
        )

        add_network_options(parser, "; not given: from where the present one may")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        issued = issue_secret(
            system_user=find_system_user(options["client_id"]),
            expires_at=options["secret_expires"],
            retire_old_at=options["retire_old"],
            allowed_networks=read_networks(options),
            by=by,
            at=at,
        )
        present = issued.system_user.credentials.filter(slot__isnull=False)
        secrets = present.exclude(pk=issued.secret.pk)
        old = [{"secret_hint": s.hint, "secret_expires_at": s.expires_at} for s in secrets]
        old_text = "".join(
            f"\nThe old secret {s} works until {format_moment(s.expires_at)}."
            f" When the ERP has changed over:"
            f" manage.py revoke_secret {issued.system_user.client_id} {s.hint}"
            for s in secrets
        )
        return Output(secret_data(issued) | {"old": old}, secret_text(issued) + old_text)
