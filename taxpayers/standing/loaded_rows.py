"""The facts of rows that are already loaded, for pages that show many of them (contract 4)."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Prefetch, QuerySet

from taxpayers.facts.values import ClientFacts, CredentialFacts
from taxpayers.models import Credential, SystemUser
from taxpayers.standing.standing import Standing, standing_of

_PREFETCHED = "unrevoked_credentials"


def with_credentials(rows: "QuerySet[SystemUser]") -> "QuerySet[SystemUser]":
    """The same rows, with all that `standing_of_row` reads: one query more for all of them."""
    secrets = Prefetch("credentials", _unrevoked(), to_attr=_PREFETCHED)
    return rows.select_related("taxpayer").prefetch_related(secrets)


def standing_of_row(row: SystemUser, at: datetime) -> Standing:
    """What a login of this system user for its own taxpayer would get at this moment."""
    usable = [credential_facts(secret) for secret in _unrevoked_of(row) if secret.fits(row)]
    return standing_of(client_facts(row), usable, tuple(settings.SCOPES), at)


def credentials_of(row: SystemUser) -> list[Credential]:
    """Those neither revoked nor replaced, the oldest first: two at most, which may have expired."""
    present = (secret for secret in _unrevoked_of(row) if secret.slot is not None)
    return sorted(present, key=lambda secret: secret.pk)


def client_facts(row: SystemUser) -> ClientFacts:
    """As a login for its own taxpayer sees it: without the role of an intermediary."""
    made: dict[str, Any] = {
        "taxpayer": row.taxpayer.identifier,
        "taxpayer_is_active": row.taxpayer.is_active,
        "scopes": tuple(row.scopes.split()),
        "intermediary": None,
        "allowed_permissions": tuple(row.allowed_permissions.split()),
        "has_allowed_taxpayers": bool(row.allowed_taxpayers),
    }
    as_stored = (name for name in ClientFacts.__struct_fields__ if name not in made)
    return ClientFacts(**made, **{name: getattr(row, name) for name in as_stored})


def credential_facts(row: Credential) -> CredentialFacts:
    """As a login sees it."""
    return CredentialFacts(
        row.pk,
        row.hint,
        row.expires_at,
        row.revoked_at,
        row.public_jwk,
        tuple(row.allowed_networks.split()),
        row.is_certificate,
    )


def _unrevoked_of(row: SystemUser) -> list[Credential]:
    loaded: list[Credential] | None = getattr(row, _PREFETCHED, None)
    return list(_unrevoked().filter(system_user=row)) if loaded is None else loaded


def _unrevoked() -> "QuerySet[Credential]":
    # No login gets a token with a revoked one; whether one has expired, the rules decide.
    return Credential.objects.filter(revoked_at__isnull=True)
