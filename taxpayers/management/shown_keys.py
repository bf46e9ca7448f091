"""What commands show of the keys that a system user logs in with: all of it is public."""

from typing import Any

from django.conf import settings

from taxpayers.models import SystemUser
from taxpayers.moments import format_moment


def keys_data(owner: SystemUser) -> dict[str, Any]:
    """For machines."""
    return {
        "client_id": owner.client_id,
        "token_endpoint_auth_method": owner.token_endpoint_auth_method,
        "keys": [
            {"kid": row.kid, "expires_at": row.expires_at}
            for row in owner.credentials.filter(slot__isnull=False).order_by("pk")
        ],
        "environment": settings.ENVIRONMENT,
        "token_endpoint": f"{settings.AUTH_URL}/connect/token",
        "issuer": settings.AUTH_URL,
    }


def keys_text(owner: SystemUser) -> str:
    """For people."""
    keys = "".join(
        f"key            {row.kid} (until {format_moment(row.expires_at)})\n"
        for row in owner.credentials.filter(slot__isnull=False).order_by("pk")
    )
    return (
        f"client_id      {owner.client_id}\n"
        f"{keys}"
        f"log in at      {settings.AUTH_URL}/connect/token\n"
        f"aud            {settings.AUTH_URL}\n"
        "\n"
        "It logs in with private_key_jwt: kid in the header of each client_assertion, aud as above."
    )
