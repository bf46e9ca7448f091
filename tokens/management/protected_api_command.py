"""The base of the commands for protected APIs: how one is named, found and shown."""

from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Q

from taxpayers.credentials import hint_of
from taxpayers.management.operation_command import OperationCommand, Options
from taxpayers.services import ServiceError
from taxpayers.validation import validate_text
from tokens.models import ProtectedApi, ProtectedApiSecret

_LONGEST = 255


class ProtectedApiCommand(OperationCommand):
    """`API`."""

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("api", metavar="API", help="its client ID, or its name")

    def find(self, options: Options) -> Any:
        """Raises ServiceError if there is none; a text that may be a secret is not repeated."""
        text = options["api"]
        row = ProtectedApi.objects.filter(Q(client_id=text) | Q(name=text)).first()
        if row is None:
            shown = validate_text(text, "the client ID or the name of the API", _LONGEST)
            raise ServiceError(
                f"There is no protected API {shown}. Register it first:"
                " manage.py register_protected_api NAME --audience AUDIENCE"
            )
        return row

    def data(self, row: ProtectedApi) -> dict[str, Any]:
        return {"client_id": row.client_id, "name": row.name, "is_active": row.is_active}


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
