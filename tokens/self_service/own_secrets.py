"""The secrets or keys of a client, as it may see them: never a secret or a hash (contract 3)."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q

from taxpayers.models import Credential
from tokens.http import rfc3339, rfc3339_or_none

RECENTLY = timedelta(days=30)
_MOST = 20  # a client that gets a new secret each day has more in 30 days


def own_secrets(system_user_id: int, at: datetime) -> list[Credential]:
    """The live ones, then those that have ended within 30 days, the newest first; one query."""
    since = at - RECENTLY
    secrets = Credential.objects.filter(
        Q(revoked_at=None) | Q(revoked_at__gte=since),
        system_user=system_user_id,
        expires_at__gte=since,
    )
    # A live one has a slot.
    found = secrets.order_by(F("slot").asc(nulls_last=True), "-pk")[:_MOST]
    return sorted(
        found.select_related("system_user__usage"),
        key=lambda secret: (not secret.is_live(at), -secret.pk),
    )


def live_of(secrets: Iterable[Credential], at: datetime) -> list[Credential]:
    """Those with which a login can succeed."""
    return [secret for secret in secrets if secret.is_live(at)]


def secret_as_json(secret: Credential, issued_by: int, at: datetime) -> dict[str, Any]:
    """One in JSON, a key or certificate with its name; `issued_by`: the token comes from it."""
    return _named(secret) | {
        "hint": secret.hint,
        "state": secret.state(at),
        "issued_this_token": secret.pk == issued_by,
        "created_at": rfc3339(secret.created_at),
        "expires_at": rfc3339(secret.expires_at),
        "revoked_at": rfc3339_or_none(secret.revoked_at),
        "last_used_at": rfc3339_or_none(secret.last_used_at),
        "allowed_networks": secret.allowed_networks.split(),  # none: from anywhere
    }


def _named(secret: Credential) -> dict[str, str]:
    if secret.is_certificate:
        return {"certificate": secret.name}
    return {"kid": secret.name} if secret.is_key else {}
