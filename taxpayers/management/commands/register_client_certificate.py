"""`register_client_certificate CLIENT_ID --certificate FILE`: one more certificate of a client."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import parse_end
from taxpayers.management.certificate_names import (
    add_certificate_name,
    certificate_name,
    certificates_data,
    certificates_text,
)
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.management.find_records import find_system_user
from taxpayers.services import Author, register_client_certificate
from taxpayers.services.login_method.certificates import REGISTER_CLIENT_CERTIFICATE


class Command(ServiceCommand):
    operation = REGISTER_CLIENT_CERTIFICATE

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        add_certificate_name(parser, required=True)
        parser.add_argument(
            "--expires", metavar="DATE", type=parse_end, help="last day of the registration"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        owner = find_system_user(options["client_id"])
        register_client_certificate(
            system_user=owner,
            expires_at=options["expires"],
            by=by,
            at=at,
            **certificate_name(options),
        )
        return Output(certificates_data(owner), certificates_text(owner))
