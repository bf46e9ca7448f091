"""One login attempt from its first byte to its answer: what is known of it so far."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from taxpayers.rules import Authorization, Facts, Refusal, SecretFacts
from tokens.endpoint.request import TokenRequest
from tokens.rate_limits.quota import Quota


@dataclass(slots=True)
class Login:
    """Filled on the way by whoever finds something out; read by the answer and by its record.

    `id` is the correlation id, the key of the login event and the `jti` of the token.
    """

    id: UUID
    at: datetime
    source_address: str | None = None
    user_agent: str = ""
    attempt: TokenRequest = field(default_factory=TokenRequest)
    hashed_secret: str = field(default="", repr=False)
    facts: Facts | None = None  # there once a secret matched: from here on the reason is told
    authorization: Authorization | None = None
    kid: str = ""
    quota: Quota | None = None
    refusal: Refusal | None = None

    @property
    def secret(self) -> SecretFacts | None:
        """The secret that matched."""
        return self.facts.secret if self.facts else None
