"""How the clients of the sandbox are made: real states of the registry, by its services."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.utils import timezone

from taxpayers import services
from taxpayers.evidence import on_paper
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, Intermediary, Taxpayer
from taxpayers.services.sandbox.clients import register_sandbox_client
from tokens.operations.sandbox import NEVER

# The taxpayers of the clients; each is registered only for the sandbox.
REPRESENTED = "C9990000010"
WITHOUT_PERMISSION = "C9990000011"
NOT_YET_VALID = "C9990000012"
EXPIRED = "C9990000013"
REVOKED = "C9990000014"
SANDBOX = services.Author("sandbox", kind=services.AuthorKind.OPERATOR)
BEGAN, ENDED = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 12, 31, tzinfo=UTC)
PROOF = on_paper("sandbox")
REASON = "This is what the client of the sandbox shows"
CODES = ("documents:submit", "documents:view")
UNUSED_NETWORK = "192.0.2.0/24"  # RFC 5737: for documentation
OWN, INACTIVE = "C9990000001", "C9990000002"
AGENT, ENDED_AGENT = "C9990000003", "C9990000004"


def new_client(
    name: str, at: datetime, tin: str = OWN, ends: datetime = NEVER, **facts: Any
) -> services.IssuedSecret:
    """The client, of this taxpayer; its secret ends at `ends`."""
    return register_sandbox_client(
        name=name, taxpayer=taxpayer_of(tin), secret_expires_at=ends, by=SANDBOX, at=at, **facts
    )


def taxpayer_of(tin: str) -> Taxpayer:
    """The taxpayer with this TIN."""
    present = Taxpayer.objects.filter(tin=tin, rob="").first()
    return present or services.register_taxpayer(
        taxpayer=TaxpayerId(tin), name=f"Sandbox: taxpayer {tin}", by=SANDBOX, at=BEGAN
    )


def role_of(tin: str, until: datetime | None = None) -> Intermediary:
    """The taxpayer with this TIN as an intermediary, until that moment if it is new."""
    present = Intermediary.objects.filter(taxpayer__tin=tin, taxpayer__rob="").first()
    return present or services.register_intermediary(
        taxpayer=taxpayer_of(tin), until=until, by=SANDBOX, at=BEGAN
    )


def permission_of(
    tin: str, at: datetime, begins: datetime | None = None, ends: datetime | None = None
) -> GrantedPermission:
    """The permission of this taxpayer for the agent, made at `at` if there is none."""
    taxpayer, agent = taxpayer_of(tin), role_of(AGENT)
    present = GrantedPermission.objects.filter(taxpayer=taxpayer, intermediary=agent).first()
    return present or services.grant_permission(
        taxpayer=taxpayer,
        intermediary=agent,
        codes=CODES,
        valid_from=begins,
        valid_until=ends,
        evidence=PROOF,
        by=SANDBOX,
        at=at,
    )


def end_of_tomorrow(at: datetime) -> datetime:
    """Seen from this moment."""
    tomorrow = timezone.localtime(at).date() + timedelta(days=1)
    return timezone.make_aware(datetime.combine(tomorrow, time(23, 59, 59)))


def make_agent(
    name: str,
    at: datetime,
    of: str = REPRESENTED,
    granted_at: datetime | None = None,
    begins: datetime | None = None,
    ends: datetime | None = None,
    **facts: Any,
) -> None:
    """A client of the agent, to which this taxpayer has granted a permission, now or then."""
    permission_of(of, granted_at or at, begins, ends)
    new_client(name, at, AGENT, **facts)


def make_ending(name: str, at: datetime) -> None:
    """Its secret ends tomorrow."""
    new_client(name, at, ends=end_of_tomorrow(at))


def make_in_the_past(name: str, _at: datetime, **facts: Any) -> None:
    """Made long ago."""
    new_client(name, BEGAN, **facts)


def make_revoked_secret(name: str, at: datetime) -> None:
    """Its secret is revoked."""
    services.revoke_credential(
        credential=new_client(name, at).secret, reason=REASON, by=SANDBOX, at=at
    )


def make_blocked(name: str, at: datetime) -> None:
    """It is blocked."""
    user = new_client(name, at).system_user
    services.block_system_user(system_user=user, reason=REASON, by=SANDBOX, at=at)


def make_inactive(name: str, at: datetime) -> None:
    """Its taxpayer is not active."""
    user = new_client(name, at, INACTIVE).system_user
    services.set_taxpayer_active(
        taxpayer=user.taxpayer, is_active=False, reason=REASON, by=SANDBOX, at=at
    )


def make_inactive_intermediary(name: str, at: datetime) -> None:
    """The role of its taxpayer has ended."""
    role_of(ENDED_AGENT, until=ENDED)
    new_client(name, at, ENDED_AGENT)


def make_revoked_permission(name: str, at: datetime) -> None:
    """The permission is revoked."""
    services.revoke_permission(
        permission=permission_of(REVOKED, at), evidence=PROOF, reason=REASON, by=SANDBOX, at=at
    )
    new_client(name, at, AGENT)
