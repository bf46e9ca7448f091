"""What the registry knows about a client, as frozen values: all that a decision looks at. Pure."""

from datetime import datetime

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.value import Hidden, Value

CERTIFICATE = "client_certificate"  # what a refusal names where a request has no parameter for it


class CredentialFacts(Value):
    """The secret that matched, the key that an assertion names, or the name in a certificate."""

    id: int
    hint: str
    expires_at: datetime
    revoked_at: datetime | None
    public_jwk: str = ""  # of a key, which proves nothing before a signature was verified with it
    allowed_networks: tuple[str, ...] = ()  # from where logins may come; none: from anywhere
    is_certificate: bool = False

    @property
    def parameter(self) -> str:
        """The parameter that a refusal names if it was no secret."""
        if self.is_certificate:
            return CERTIFICATE
        return "client_assertion" if self.public_jwk else ""


class IntermediaryFacts(Value):
    is_active: bool
    active_until: datetime | None


class PermissionFacts(Value):
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


class ClientFacts(Value):
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
    token_binding: str = TokenBinding.BEARER
    allowed_permissions: tuple[str, ...] = ()  # which tokens carry at most; none: all granted
    has_allowed_taxpayers: bool = False  # whether it may act for some taxpayers only
    only_on_behalf: bool = False

    @property
    def is_limited(self) -> bool:
        """Whether it gets tokens on behalf of others only, for all that they granted or less."""
        limits = (self.only_on_behalf, self.allowed_permissions, self.has_allowed_taxpayers)
        return any(limits)


class RepresentedFacts(Value):
    """What the registry knows of the taxpayer named by `onbehalfof`, seen from the client."""

    taxpayer: TaxpayerId
    is_active: bool | None  # None: there is no such taxpayer
    permissions: tuple[PermissionFacts, ...] = ()
    is_allowed: bool = True  # whether the client's limit allows this one, registered or not


class StatusFacts(Value):
    """The index in status lists of the tokens that this secret got for this taxpayer."""

    index: int
    version: int  # another one when the scopes or permissions are
    scopes: tuple[str, ...]  # all that any of these tokens may do
    permissions: tuple[str, ...] = ()


class Facts(Value):
    """All that the registry says about one attempt."""

    client: ClientFacts
    credential: CredentialFacts
    represented: RepresentedFacts | None = None
    epoch: int = 0  # the facts are true while the client has it (`taxpayers.facts.epochs.row`)
    status: StatusFacts | None = None  # None: no token has one yet. Only logins know it


class FactsQuery(Value):
    """Whose facts: a client, its credential, and the taxpayer that `onbehalfof` names."""

    client_id: str
    lookup: Hidden[str]  # the hash of a secret or of a subject, or `client_keys.key_name`
    on_behalf_of: TaxpayerId | None


class Reading(Value):
    """What is known of a client at the moment `at`, by the database's clock."""

    at: datetime
    facts: Facts | None  # None: the id is unknown or the secret is wrong
    counter: tuple[datetime, int] | None = None  # window and logins; None: not read now

    @property
    def is_remembered(self) -> bool:
        """Whether the facts are those of the node, which the registry has yet to confirm."""
        return self.facts is not None and self.counter is None


ASSERTION = "client_assertion"  # the parameter of a key, in the same place
