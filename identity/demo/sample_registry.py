"""The sample that the demo prints: a taxpayer and an intermediary, created once (contract 6)."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from taxpayers.credentials import Credentials, hash_secret
from taxpayers.evidence import on_paper
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Credential, GrantedPermission, Intermediary, Taxpayer
from taxpayers.services import (
    Author,
    AuthorKind,
    grant_permission,
    issue_secret,
    register_intermediary,
    register_system_user,
    register_taxpayer,
    revoke_credential,
)

TAXPAYER, INTERMEDIARY = TaxpayerId("C1234567890"), TaxpayerId("C9876543210")
PERMISSIONS = ("documents:submit", "documents:view")
_BY = Author("demo (manage.py)", kind=AuthorKind.OPERATOR)


@dataclass(frozen=True, slots=True)
class SampleCredentials:
    """Of the taxpayer's own ERP, and of the intermediary's, which may act for the taxpayer."""

    taxpayer: Credentials
    intermediary: Credentials


@transaction.atomic
def make_sample_registry(saved: SampleCredentials | None, at: datetime) -> SampleCredentials:
    """Create what is missing. Saved credentials are returned as long as they are valid.

    What staff changed since the last run stays as they left it.
    """
    taxpayer = _taxpayer(TAXPAYER, "Demo Taxpayer", at)
    agent = _taxpayer(INTERMEDIARY, "Demo Intermediary", at)
    intermediary = Intermediary.objects.filter(taxpayer=agent).first() or register_intermediary(
        taxpayer=agent, by=_BY, at=at
    )
    if not GrantedPermission.objects.filter(taxpayer=taxpayer, intermediary=intermediary).exists():
        grant_permission(
            taxpayer=taxpayer,
            intermediary=intermediary,
            codes=PERMISSIONS,
            evidence=on_paper("demo"),
            by=_BY,
            at=at,
        )
    return SampleCredentials(
        _credentials(taxpayer, "Demo ERP", saved.taxpayer if saved else None, at),
        _credentials(agent, "Demo intermediary ERP", saved.intermediary if saved else None, at),
    )


def _taxpayer(identifier: TaxpayerId, name: str, at: datetime) -> Taxpayer:
    existing = Taxpayer.objects.filter(tin=identifier.tin, rob=identifier.rob).first()
    return existing or register_taxpayer(taxpayer=identifier, name=name, by=_BY, at=at)


def _credentials(
    taxpayer: Taxpayer, name: str, saved: Credentials | None, at: datetime
) -> Credentials:
    if saved is not None and _are_valid(taxpayer, saved, at):
        return saved
    existing = taxpayer.system_users.filter(name=name).first()
    if existing is None:
        return register_system_user(
            reason="a new ERP system", taxpayer=taxpayer, name=name, by=_BY, at=at
        ).credentials
    # Its secrets are lost, and a system user has room for two: revoke them all.
    for secret in existing.credentials.filter(slot__isnull=False):
        revoke_credential(
            credential=secret, reason="the demo's credentials were lost", by=_BY, at=at
        )
    return issue_secret(reason="a new ERP system", system_user=existing, by=_BY, at=at).credentials


def _are_valid(taxpayer: Taxpayer, saved: Credentials, at: datetime) -> bool:
    stored = Credential.objects.filter(
        system_user__client_id=saved.client_id,
        system_user__taxpayer=taxpayer,
        lookup=hash_secret(saved.client_secret),
    ).first()
    return stored is not None and stored.is_live(at)
