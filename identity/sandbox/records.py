"""The records that the clients of the sandbox share: each is made once, by the services."""

from datetime import UTC, datetime
from typing import Any

from taxpayers.evidence import on_paper
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, Intermediary, Taxpayer
from taxpayers.sandbox.clients import SandboxName
from taxpayers.services import (
    Author,
    AuthorKind,
    IssuedSecret,
    grant_permission,
    register_intermediary,
    register_taxpayer,
)
from taxpayers.services.sandbox.clients import register_sandbox_client
from tokens.operations.sandbox import NEVER

SANDBOX = Author("sandbox", kind=AuthorKind.OPERATOR)
BEGAN, ENDED = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 12, 31, tzinfo=UTC)
PROOF = on_paper("sandbox")
REASON = "This is what the client of the sandbox shows"
CODES = ("documents:submit", "documents:view")
UNUSED_NETWORK = "192.0.2.0/24"  # RFC 5737: for documentation
OWN, INACTIVE = "C9990000001", "C9990000002"
AGENT, ENDED_AGENT = "C9990000003", "C9990000004"


def new_client(
    name: SandboxName, at: datetime, tin: str = OWN, ends: datetime = NEVER, **facts: Any
) -> IssuedSecret:
    """The client, of this taxpayer; its secret ends at `ends`."""
    return register_sandbox_client(
        name=name, taxpayer=taxpayer_of(tin), secret_expires_at=ends, by=SANDBOX, at=at, **facts
    )


def taxpayer_of(tin: str) -> Taxpayer:
    """The taxpayer with this TIN."""
    present = Taxpayer.objects.filter(tin=tin, rob="").first()
    return present or register_taxpayer(
        taxpayer=TaxpayerId(tin), name=f"Sandbox: taxpayer {tin}", by=SANDBOX, at=BEGAN
    )


def role_of(tin: str, until: datetime | None = None) -> Intermediary:
    """The taxpayer with this TIN as an intermediary, until that moment if it is new."""
    present = Intermediary.objects.filter(taxpayer__tin=tin, taxpayer__rob="").first()
    return present or register_intermediary(
        taxpayer=taxpayer_of(tin), until=until, by=SANDBOX, at=BEGAN
    )


def permission_of(
    tin: str, at: datetime, begins: datetime | None = None, ends: datetime | None = None
) -> GrantedPermission:
    """The permission of this taxpayer for the agent, made at `at` if there is none."""
    taxpayer, agent = taxpayer_of(tin), role_of(AGENT)
    present = GrantedPermission.objects.filter(taxpayer=taxpayer, intermediary=agent).first()
    return present or grant_permission(
        taxpayer=taxpayer,
        intermediary=agent,
        codes=CODES,
        valid_from=begins,
        valid_until=ends,
        evidence=PROOF,
        by=SANDBOX,
        at=at,
    )
