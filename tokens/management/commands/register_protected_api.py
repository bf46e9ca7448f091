"""`register_protected_api NAME --audience AUDIENCE`: it may ask about tokens (contract 2)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import parse_end
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.services import Author
from tokens.protected_apis.registration import REGISTER_PROTECTED_API, register_protected_api
from tokens.protected_apis.secret_once import api_secret_data, api_secret_text


class Command(ServiceCommand):
    operation = REGISTER_PROTECTED_API

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="name of the API, for staff")
        parser.add_argument("--audience", required=True, help="audience of the tokens for it")
        parser.add_argument(
            "--secret-expires", metavar="DATE", type=parse_end, help="last day of the secret"
        )
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        issued = register_protected_api(
            name=options["name"],
            audience=options["audience"],
            secret_expires_at=options["secret_expires"],
            reason=options["reason"],
            by=by,
            at=at,
        )
        api = issued.protected_api
        data = {"name": api.name, "audience": api.audience}
        return Output(api_secret_data(issued) | data, api_secret_text(issued))
