"""What a login writes: its event, together with what it counts against. Pure."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from taxpayers.facts.values import FactsQuery, StatusFacts
from taxpayers.identifiers import TaxpayerId
from taxpayers.value import Hidden, Value
from tokens.rate_limits.quota import Quota


class Event(NamedTuple):
    """The row of a login event; the fields are its columns."""

    id: UUID
    at: datetime
    reason: str
    since: datetime | None
    parameter: str
    detail: str
    client_id: str
    system_user_id: int | None
    secret_id: int | None
    subject: str
    actor: str
    scope: str
    kid: str
    source_address: str | None
    user_agent: str


class AssertionUse(NamedTuple):
    """A client assertion, by `ClientAssertion.use_id`; `expires_at` is when it is accepted no more.

    As a separate call: stored, unless it was used before.
    """

    id: UUID
    expires_at: datetime


class ProofUse(NamedTuple):
    """A DPoP proof, by `Proof.use_id`; otherwise as an AssertionUse."""

    id: UUID
    expires_at: datetime


class UsedBefore:
    """The result of a login whose assertion was used before: it is not stored."""


class ProofUsedBefore:
    """The result of a login whose DPoP proof was used before: neither it nor anything is stored."""


class CountedLogin(NamedTuple):
    """An authenticated login, decided by the facts of this epoch, for the counter of its client.

    Stored only if the epoch is still the client's, its limit is not reached, its proof and its
    assertion, if it has them, were not used before, and the index of its token, if it has one, is
    of this version. The proof is looked at first. With `new_index` the row of the index is not
    there yet and is stored with the login: neither is if the client has such a row by now.
    """

    event: Event
    system_user_id: int
    secret_id: int
    limit: int
    epoch: int
    assertion: AssertionUse | None = None
    proof: ProofUse | None = None
    status_index: int | None = None
    status_version: int | None = None
    new_index: "TakeStatusIndex | None" = None


# The result of a CountedLogin. None: not stored, as its client has changed or reached its limit.
CountResult = Quota | UsedBefore | ProofUsedBefore | None


class FailedLogin(NamedTuple):
    """A failed login, counted in two buckets; stored unless its caller has to wait."""

    event: Event
    pair_bucket: int
    address_bucket: int


class FailedAuthentication(NamedTuple):
    """As a failed login, for the same buckets, at another endpoint: there it has no event."""

    pair_bucket: int
    address_bucket: int


class TokenRevocation(NamedTuple):
    """A token that its client has ended; `expires_at` is when it would have expired anyway.

    `status_index` ends as well; an older token has none. Without a token only the index ends.
    """

    jti: UUID | None
    expires_at: datetime | None
    status_index: int | None


class ApiSecretUse(NamedTuple):
    """A protected API has just used this secret; no answer depends on that it is stored."""

    secret_id: int


class TakeStatusIndex(NamedTuple):
    """The index for tokens that say this, an unused one if there is none yet.

    From then on the index is also used by tokens with these scopes and permissions. By the facts of
    this epoch they are good, and none of it ends by time until `check_at` (None: ever). Nothing
    is taken, and no row is changed, if the client has another epoch.
    """

    system_user_id: int
    secret_id: int
    tin: str
    rob: str
    actor: str
    scopes: tuple[str, ...]
    permissions: tuple[str, ...]
    epoch: int
    check_at: datetime | None
    reserve: int = 0  # so many unused ones more for this process, on PostgreSQL


class TakenIndex(NamedTuple):
    """The result of a TakeStatusIndex; `status` is None if its client has changed."""

    status: StatusFacts | None
    reserved: tuple[int, ...] = ()


class RejectedRequest(NamedTuple):
    """A request refused before authentication; stored unless its address has to wait."""

    event: Event
    bucket: int


Write = CountedLogin | FailedLogin | RejectedRequest
CallOfClient = CountedLogin | TakeStatusIndex  # it locks the row of its client


class TokenQuery(Value):
    """Which token, and who asks: id and hash of the secret of an API, or None if no API does.

    `jti`, `represented` and `status_index` are what the token itself says, not verified yet.
    """

    jti: UUID | None
    represented: TaxpayerId | None
    status_index: int | None
    client_id: str | None = None
    lookup: Hidden[str | None] = None


Call = (
    FactsQuery
    | Write
    | FailedAuthentication
    | TokenQuery
    | TokenRevocation
    | AssertionUse
    | ProofUse
    | TakeStatusIndex
    | ApiSecretUse
)
