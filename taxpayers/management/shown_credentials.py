"""What commands show of a system user: keys or certificates, which are public, and duties."""

from typing import Any

from django.conf import settings

from taxpayers.duties import SCOPE_OF_DUTY, Duty, are_for_management, duties_of, must_be_separate
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
        "login_method": owner.token_endpoint_auth_method,
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


def duty_note(row: SystemUser) -> dict[str, str]:
    """What the answer of the command says besides; empty for all other system users."""
    if not are_for_management(row.scopes):
        return {}
    duties = duties_of(row.scopes.split())
    may = ", ".join(duty for duty in Duty if duty in duties) or "read"
    note = f"{row.client_id} may use the management API: {may}. Only operators can change it."
    if not must_be_separate(duties):
        return {"note": note}
    scopes = ", ".join(SCOPE_OF_DUTY[duty] for duty in Duty if duty in duties)
    danger = (
        " TAKE CARE: it registers or grants AND issues credentials. One stolen token of it can let"
        " in an invented client, and no second person is needed. Better: a system user for each"
        f" duty, with one of these scopes each: {scopes}."
    )
    return {"note": note + danger}
