"""What is shown of a new secret, once, to the person who hands it over (contract 3)."""

from typing import Any

from django.conf import settings

from taxpayers.credentials import Credentials
from taxpayers.moments import format_moment
from taxpayers.services import IssuedSecret


def login_example(credentials: Credentials, token_endpoint: str) -> str:
    """A login that works, in one line, ready to paste; the secret in clear."""
    return (
        f"curl {token_endpoint} -d grant_type=client_credentials"
        f" -d client_id={credentials.client_id} -d client_secret={credentials.client_secret}"
    )


def secret_data(issued: IssuedSecret) -> dict[str, Any]:
    """The credentials for machines, the secret in clear."""
    return {
        "client_id": issued.credentials.client_id,
        "client_secret": issued.credentials.client_secret,
        "secret_hint": issued.secret.hint,
        "secret_expires_at": issued.secret.expires_at,
        "allowed_networks": issued.secret.allowed_networks.split(),
        "environment": settings.ENVIRONMENT,
        "token_endpoint": f"{settings.AUTH_URL}/connect/token",
    }


def secret_text(issued: IssuedSecret) -> str:
    """The credentials for people, the secret in clear."""
    networks = ", ".join(issued.secret.allowed_networks.split())
    return (
        f"client_id      {issued.credentials.client_id}\n"
        f"client_secret  {issued.credentials.client_secret}\n"
        f"valid until    {format_moment(issued.secret.expires_at)}\n"
        f"log in at      {settings.AUTH_URL}/connect/token\n"
        + (f"log in from    {networks} only\n" if networks else "")
        + "\nGive both to the ERP's operator. The secret is not shown again."
    )
