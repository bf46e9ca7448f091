"""What is shown of a new secret of a protected API, once, to the person who hands it over."""

from typing import Any

from django.conf import settings

from taxpayers.credentials import Credentials
from taxpayers.moments import format_moment
from tokens.protected_apis.registration import IssuedApiSecret


def introspection_endpoint() -> str:
    """The address at which the API asks whether a token is active."""
    return f"{settings.AUTH_URL}/connect/introspect"


def introspection_example(credentials: Credentials) -> str:
    """A question that is answered, in one line, ready to paste; the secret in clear."""
    return (
        f"curl {introspection_endpoint()} -u {credentials.client_id}:{credentials.client_secret}"
        " -d token=TOKEN"
    )


def api_secret_data(issued: IssuedApiSecret) -> dict[str, Any]:
    """The credentials for machines, the secret in clear."""
    return {
        "client_id": issued.credentials.client_id,
        "client_secret": issued.credentials.client_secret,
        "secret_hint": issued.secret.hint,
        "secret_expires_at": issued.secret.expires_at,
        "environment": settings.ENVIRONMENT,
        "introspection_endpoint": introspection_endpoint(),
    }


def api_secret_text(issued: IssuedApiSecret) -> str:
    """The credentials for people, the secret in clear."""
    return (
        f"client_id      {issued.credentials.client_id}\n"
        f"client_secret  {issued.credentials.client_secret}\n"
        f"valid until    {format_moment(issued.secret.expires_at)}\n"
        f"ask at         {introspection_endpoint()}\n"
        "\n"
        "Give both to the operator of the protected API. The secret is not shown again."
    )
