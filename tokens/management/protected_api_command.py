"""What the commands for protected APIs share: finding one, and showing a new secret once."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.db.models import Q

from taxpayers.credentials import hint_of
from taxpayers.management.command import NO_REASON
from taxpayers.moments import format_moment
from taxpayers.services import ServiceError
from taxpayers.validation import validate_text
from tokens.protected_apis.models import ProtectedApi, ProtectedApiSecret
from tokens.protected_apis.registration import IssuedApiSecret

_LONGEST = 255


def add_protected_api(parser: CommandParser) -> None:
    """`API [--reason TEXT]`; find it with `find_protected_api`."""
    parser.add_argument("api", metavar="API", help="its client ID, or its name")
    add_reason(parser)


def add_reason(parser: CommandParser) -> None:
    """`--reason TEXT`."""
    parser.add_argument("--reason", metavar="TEXT", default=NO_REASON, help="for the history")


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
    secrets = list(owner.secrets.order_by("-pk"))
    found = next((secret for secret in secrets if secret.hint == hint_of(hint)), None)
    if found is None:
        listed = ", ".join(map(str, secrets)) or "none"
        raise ServiceError(f"{owner} has no secret with this ending. Its secrets: {listed}.")
    return found


def secret_data(issued: IssuedApiSecret) -> dict[str, Any]:
    """The credentials for machines, the secret in clear."""
    return {
        "client_id": issued.credentials.client_id,
        "client_secret": issued.credentials.client_secret,
        "secret_hint": issued.secret.hint,
        "secret_expires_at": issued.secret.expires_at,
        "environment": settings.ENVIRONMENT,
        "introspection_endpoint": _endpoint(),
    }


def secret_text(issued: IssuedApiSecret) -> str:
    """The credentials for people, the secret in clear."""
    return (
        f"client_id      {issued.credentials.client_id}\n"
        f"client_secret  {issued.credentials.client_secret}\n"
        f"valid until    {format_moment(issued.secret.expires_at)} ({settings.TIME_ZONE})\n"
        f"ask at         {_endpoint()}\n"
        "\n"
        "Give both to the operator of the protected API. The secret is not shown again."
    )


def _endpoint() -> str:
    return f"{settings.AUTH_URL}/connect/introspect"
