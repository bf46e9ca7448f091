"""What the registry knows about a client, as frozen values: all that a decision looks at. Pure."""

from dataclasses import dataclass
from datetime import datetime

from taxpayers.identifiers import TaxpayerId


@dataclass(frozen=True, slots=True)
class SecretFacts:
    """The secret that matched."""

    id: int
    hint: str
    expires_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class IntermediaryFacts:
    is_active: bool
    active_until: datetime | None


@dataclass(frozen=True, slots=True)
class PermissionFacts:
    """One permission granted by the represented taxpayer to the client's intermediary."""

    codes: tuple[str, ...]
    valid_from: datetime
    valid_until: datetime | None
    revoked_at: datetime | None

    @property
    def ended_at(self) -> datetime | None:
        """The last moment of force; None if none is known. A revocation takes force at once."""
        ends = [moment for moment in (self.valid_until, self.revoked_at) if moment is not None]
        return min(ends) if ends else None


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """What the registry knows of a client, its own taxpayer and its role."""

    id: int
    client_id: str
    taxpayer: TaxpayerId
    taxpayer_is_active: bool
    scopes: tuple[str, ...]
    logins_per_minute: int
    blocked_at: datetime | None
    expires_at: datetime | None
    intermediary: IntermediaryFacts | None


@dataclass(frozen=True, slots=True)
class RepresentedFacts:
    """What the registry knows of the taxpayer named by `onbehalfof`, seen from the client.

    `is_active` is None when there is no such taxpayer.
    """

    taxpayer: TaxpayerId
    is_active: bool | None
    permissions: tuple[PermissionFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the registry says about one attempt."""

    client: ClientFacts
    secret: SecretFacts
    represented: RepresentedFacts | None = None
