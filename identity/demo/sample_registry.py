"""The sample data of the embedded start: nothing is made twice (contract 6, `demo`)."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from taxpayers.credentials import Credentials, hash_secret
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import ClientSecret, GrantedPermission, Intermediary, Taxpayer
from taxpayers.services import (
    Author,
    grant_permission,
    issue_secret,
    register_intermediary,
    register_system_user,
    register_taxpayer,
    revoke_secret,
)

TAXPAYER, INTERMEDIARY = TaxpayerId("C1234567890"), TaxpayerId("C9876543210")
PERMISSIONS = ("documents:submit", "documents:view")
_BY = Author("demo (manage.py)")


@dataclass(frozen=True, slots=True)
class Sample:
    """A taxpayer with its own ERP, and an intermediary with one that may act for it."""

    taxpayer: Credentials
    intermediary: Credentials


@transaction.atomic
def make_sample(kept: Sample | None, at: datetime) -> Sample:
    """What is missing of the sample, made; `kept` is what the last run made.

    It stays the same as long as it works; what staff changed since stays as staff left it.
    """
    taxpayer = _taxpayer(TAXPAYER, "Demo Taxpayer", at)
    agent = _taxpayer(INTERMEDIARY, "Demo Intermediary", at)
    intermediary = Intermediary.objects.filter(taxpayer=agent).first() or register_intermediary(
        taxpayer=agent, by=_BY, at=at
    )
    if not GrantedPermission.objects.filter(taxpayer=taxpayer, intermediary=intermediary).exists():
        grant_permission(
            taxpayer=taxpayer, intermediary=intermediary, codes=PERMISSIONS, by=_BY, at=at
        )
    return Sample(
        _credentials(taxpayer, "Demo ERP", kept.taxpayer if kept else None, at),
        _credentials(agent, "Demo intermediary ERP", kept.intermediary if kept else None, at),
    )


def _taxpayer(identifier: TaxpayerId, name: str, at: datetime) -> Taxpayer:
    present = Taxpayer.objects.filter(tin=identifier.tin, rob=identifier.rob).first()
    return present or register_taxpayer(taxpayer=identifier, name=name, by=_BY, at=at)


def _credentials(
    taxpayer: Taxpayer, name: str, kept: Credentials | None, at: datetime
) -> Credentials:
    if kept is not None and _work(taxpayer, kept, at):
        return kept
    present = taxpayer.system_users.filter(name=name).first()
    if present is None:
        return register_system_user(taxpayer=taxpayer, name=name, by=_BY, at=at).credentials
    # Nobody has its secrets any more: not even both places full of them may stop the demo.
    for secret in present.secrets.filter(slot__isnull=False):
        revoke_secret(secret=secret, reason="the demo's credentials were lost", by=_BY, at=at)
    return issue_secret(system_user=present, by=_BY, at=at).credentials


def _work(taxpayer: Taxpayer, kept: Credentials, at: datetime) -> bool:
    stored = ClientSecret.objects.filter(
        system_user__client_id=kept.client_id,
        system_user__taxpayer=taxpayer,
        hashed=hash_secret(kept.client_secret),
    ).first()
    return stored is not None and stored.is_live(at)
