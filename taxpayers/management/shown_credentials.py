"""What commands show of the keys or certificates that a system user logs in with: all public."""

from typing import Any

from django.conf import settings

from taxpayers.management.command import Output
from taxpayers.models import SystemUser
from taxpayers.moments import format_moment


def shown_credentials(owner: SystemUser) -> Output:
    """What the ERP system and its operator need to know."""
    rows = list(owner.credentials.filter(slot__isnull=False).order_by("pk"))
    base_url = settings.AUTH_URL
    if owner.uses_certificate:
        base_url = settings.MTLS_URL or base_url
        own: dict[str, Any] = {
            "certificates": [
                {"name": row.certificate_name, "hint": row.hint, "expires_at": row.expires_at}
                for row in rows
            ]
        }
        names = [f"certificate    {row.certificate_name} ({row}, {_until(row)})" for row in rows]
        audience = []
        how = "tls_client_auth: client_id in the form, and a certificate with this name."
    else:
        own = {
            "keys": [{"kid": row.kid, "expires_at": row.expires_at} for row in rows],
            "issuer": base_url,
        }
        names = [f"key            {row.kid} ({_until(row)})" for row in rows]
        audience = [f"aud            {base_url}"]
        how = "private_key_jwt: kid in the header of each client_assertion, aud as above."
    data = {
        "client_id": owner.client_id,
        "token_endpoint_auth_method": owner.token_endpoint_auth_method,
        **own,
        "environment": settings.ENVIRONMENT,
        "token_endpoint": f"{base_url}/connect/token",
    }
    lines = [
        f"client_id      {owner.client_id}",
        *names,
        f"log in at      {base_url}/connect/token",
        *audience,
        "",
        f"It logs in with {how}",
    ]
    return Output(data, "\n".join(lines))


def _until(row: Any) -> str:
    return f"until {format_moment(row.expires_at)}"
