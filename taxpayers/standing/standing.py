"""What a login of a system user would get at a moment: the rules, asked for all its secrets. Pure.

It is a login for its own taxpayer, which every system user may do that is not limited in what it
may do for others; a login on behalf of another one also needs a permission. So the limit itself is
left out here: it does not stop a system user, it says for which taxpayer it may log in.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from taxpayers.facts.values import ClientFacts, CredentialFacts, Facts
from taxpayers.rules import (
    RULES,
    AuthorizationRequest,
    Refused,
    RegistryReason,
    required_confirmation,
)

_OF_SECRETS = frozenset({RegistryReason.SECRET_EXPIRED, RegistryReason.SECRET_REVOKED})
_OF_LIMIT = RegistryReason.OWN_TAXPAYER_NOT_ALLOWED


@dataclass(frozen=True, slots=True)
class Standing:
    valid_credentials: tuple[CredentialFacts, ...]  # the last to end first
    refusals: tuple[Refused, ...]  # what else refuses every login, in the contract's order

    @property
    def gets_token(self) -> bool:
        """Whether a login with one of the valid secrets gets a token."""
        return bool(self.valid_credentials) and not self.refusals


def standing_of(
    client: ClientFacts,
    secrets: Iterable[CredentialFacts],
    known_scopes: tuple[str, ...],
    at: datetime,
) -> Standing:
    """What a login of this client with one of these secrets would get."""

    def refusals_with(secret: CredentialFacts) -> list[Refused]:
        facts = Facts(client, secret)
        proved = required_confirmation(facts)
        return list(_refusals(AuthorizationRequest(facts, None, known_scopes, at, proved)))

    valid = (s for s in secrets if not any(_is_of_secret(r) for r in refusals_with(s)))
    # The other rules do not look at the secret, so that any one shows what they say.
    any_secret = CredentialFacts(0, "", at, None)
    return Standing(
        tuple(sorted(valid, key=lambda secret: secret.expires_at, reverse=True)),
        tuple(refused for refused in refusals_with(any_secret) if not _is_of_secret(refused)),
    )


def _is_of_secret(refused: Refused) -> bool:
    return refused.reason in _OF_SECRETS


def _refusals(request: AuthorizationRequest) -> Iterable[Refused]:
    for rule in RULES:
        try:
            rule(request)
        except Refused as refused:
            if refused.reason != _OF_LIMIT:
                yield refused
