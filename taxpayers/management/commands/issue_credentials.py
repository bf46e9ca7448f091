"""`issue_credentials TIN[:ROB] --name NAME …`: a new system user with its secret (contract 6)."""

from datetime import datetime

from django.core.management.base import CommandParser

from taxpayers.management import arguments
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.management.find_records import find_taxpayer
from taxpayers.management.operation_command import Options
from taxpayers.management.shown_credentials import duty_note, shown_credentials
from taxpayers.secret_once import secret_data, secret_text
from taxpayers.services import Author, register_system_user, register_system_user_without_secret
from taxpayers.services.system_users import ISSUE_CREDENTIALS

_FIELDS = {
    "name": {"required": True, "help": "name of the ERP system, for staff"},
    "scopes": arguments.words("--scope", "S", "scopes that it may ask for"),
    "expires_at": arguments.day("--expires", "last day of the system user"),
    "logins_per_minute": {"metavar": "N", "type": int, "help": "0: unlimited, still counted"},
    "credentials_expire_at": arguments.day("--secret-expires", "last day of the secret"),
}
_KEYS = (
    "log in with the private keys of these public ones (JWK Set, JWK or PEM; -: stdin) instead of"
    " a secret; --secret-expires is then the last day of the keys"
)


class Command(ServiceCommand):
    operation = ISSUE_CREDENTIALS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("taxpayer", metavar="TIN[:ROB]", type=arguments.parse_taxpayer_id)
        arguments.add_fields(parser, _FIELDS)
        arguments.add_fields(parser, {"jwks": arguments.file(_KEYS)})
        arguments.add_fields(parser, arguments.LIMITS)
        arguments.add_network_options(parser)
        add_reason(parser)

    def act(self, options: Options, *, by: Author, at: datetime) -> Output:
        limits = arguments.read_limit(options)
        fields = {name: options[name] for name in _FIELDS} | {
            "taxpayer": find_taxpayer(options["taxpayer"]),
            "allowed_permissions": limits["permissions"],
            "allowed_taxpayers": limits["taxpayers"],
            "only_on_behalf": limits["only_on_behalf"],
            "allowed_networks": options["allowed_networks"] or (),
            "reason": options["reason"],
            "by": by,
            "at": at,
        }
        if (keys := options["jwks"]) is not None:
            owner = register_system_user_without_secret(keys=keys, **fields)
            shown = shown_credentials(owner)
        else:
            issued = register_system_user(**fields)
            owner = issued.system_user
            shown = Output(secret_data(issued), secret_text(issued))
        note = duty_note(owner)
        data = {"taxpayer": options["taxpayer"], **arguments.shown_settings(owner)}
        text = "\n\n".join([shown.text, *note.values()])
        return Output(shown.data | data | note, text)
