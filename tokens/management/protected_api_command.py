"""What the commands for protected APIs share: their arguments, and finding one."""

from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Q

from taxpayers.credentials import hint_of
from taxpayers.management.command import add_reason
from taxpayers.management.operation_command import OperationCommand
from taxpayers.services import ServiceError
from taxpayers.validation import validate_text
from tokens.models import ProtectedApi, ProtectedApiSecret

_LONGEST = 255
_NAMED = "its client ID, or its name"


def add_protected_api(parser: CommandParser) -> None:
    """`API [--reason TEXT]`; find it with `find_protected_api`."""
    parser.add_argument("api", metavar="API", help=_NAMED)
    add_reason(parser)


class ProtectedApiCommand(OperationCommand):
    """`API`."""

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("api", metavar="API", help=_NAMED)

    def find(self, options: dict[str, Any]) -> ProtectedApi:
        return find_protected_api(options["api"])

    def data(self, row: ProtectedApi) -> dict[str, Any]:
        return {"client_id": row.client_id, "name": row.name, "is_active": row.is_active}


def find_protected_api(text: str) -> ProtectedApi:
    """Raises ServiceError if there is none; a text that may be a secret is not repeated."""
    row = ProtectedApi.objects.filter(Q(client_id=text) | Q(name=text)).first()
    if row is None:
        shown = validate_text(text, "the client ID or the name of the API", _LONGEST)
        raise ServiceError(
            f"There is no protected API {shown}. Register it first:"
            " manage.py register_protected_api NAME --audience AUDIENCE"
        )
    return row


def find_api_secret(owner: ProtectedApi, hint: str) -> ProtectedApiSecret:
    """The newest secret that ends with these four characters.

    Raises ServiceError, which lists the secrets, if there is none.
    """
    secrets = list(owner.credentials.order_by("-pk"))
    found = next((secret for secret in secrets if secret.hint == hint_of(hint)), None)
    if found is None:
        listed = ", ".join(map(str, secrets)) or "none"
        raise ServiceError(f"{owner} has no secret with this ending. Its secrets: {listed}.")
    return found
