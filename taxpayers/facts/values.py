"""What the registry knows about a client, as frozen values: all that a decision looks at. Pure."""

from datetime import datetime

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.value import Hidden, Value

CERTIFICATE = "client_certificate"  # what a refusal names where a request has no parameter for it


class CredentialFacts(Value):
    """The secret that matched, or the key that an assertion names: then `public_jwk` is not empty.

    A key proves nothing before a signature was verified with it. `is_certificate`: it is a name in
    the certificate of the client's connection. Logins may come only from `allowed_networks`; none:
    from anywhere.
    """

    id: int
    hint: str
    expires_at: datetime
    revoked_at: datetime | None
    public_jwk: str = ""
    allowed_networks: tuple[str, ...] = ()
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
    """What the registry knows of a client, its own taxpayer and its role.

    `allowed_permissions`: the codes that its tokens may carry at most; none: all that are granted.
    `has_allowed_taxpayers`: whether it may act for some taxpayers only; whether the one named by a
    login is among them is `RepresentedFacts.is_allowed`.
    """

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
    allowed_permissions: tuple[str, ...] = ()
    has_allowed_taxpayers: bool = False
    only_on_behalf: bool = False

    @property
    def is_limited(self) -> bool:
        """Whether it gets tokens on behalf of others only, for all that they granted or less."""
        limits = (self.only_on_behalf, self.allowed_permissions, self.has_allowed_taxpayers)
        return any(limits)


class RepresentedFacts(Value):
    """What the registry knows of the taxpayer named by `onbehalfof`, seen from the client.

    `is_active` is None when there is no such taxpayer. `is_allowed`: whether the client, if it is
    limited to some taxpayers, may act for this one, be there such a taxpayer or not.
    """

    taxpayer: TaxpayerId
    is_active: bool | None
    permissions: tuple[PermissionFacts, ...] = ()
    is_allowed: bool = True


class StatusFacts(Value):
    """The index in status lists of the tokens that this secret got for this taxpayer.

    `scopes` and `permissions` are all that any of these tokens may do; `version` is another one
    when they are.
    """

    index: int
    version: int
    scopes: tuple[str, ...]
    permissions: tuple[str, ...] = ()


class Facts(Value):
    """All that the registry says about one attempt.

    `epoch` changes with every change that could alter a decision about this client, and never
    returns: facts with the client's present epoch are the present facts. `status` is None where no
    token has an index yet; it is known only to logins, and no rule looks at it.
    """

    client: ClientFacts
    credential: CredentialFacts
    represented: RepresentedFacts | None = None
    epoch: int = 0
    status: StatusFacts | None = None


class FactsQuery(Value):
    """Whose facts: the id and the hash of the secret as sent, and the taxpayer of `onbehalfof`.

    For a key `lookup` is its name, `taxpayers.client_keys.key_name`, for a certificate the hash of
    its subject.
    """

    client_id: str
    lookup: Hidden[str]
    on_behalf_of: TaxpayerId | None


class Reading(Value):
    """What is known of a client at the moment `at`, by the database's clock.

    No facts: the id is unknown or the secret is wrong. `counter` is when the client's latest window
    began and how many logins it has; None unless the registry itself was read.
    """

    at: datetime
    facts: Facts | None
    counter: tuple[datetime, int] | None = None

    @property
    def is_remembered(self) -> bool:
        """Whether the facts are those of the node, which the registry has yet to confirm."""
        return self.facts is not None and self.counter is None


ASSERTION = "client_assertion"  # the parameter of a key, in the same place
