"""Is a verified access token still active, by the registry now? (contract 2, RFC 7662). Pure."""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

from taxpayers.facts.values import Facts
from taxpayers.rules import AuthorizationRequest, Refused, decide
from taxpayers.value import Value
from tokens.access_tokens.verification import AccessToken

ACTIVE = "active"


class InactiveReason(StrEnum):
    """Why a token is not active, beside the reasons of the registry: only for logs."""

    NOT_VALID = "token_not_valid"  # unknown, malformed, expired, of another key or audience
    NOT_RECORDED = "login_not_recorded"
    REVOKED = "token_revoked"
    ENDED = "token_ended"  # by a change of the registry that may have been taken back since
    KEY_COMPROMISED = "signing_key_compromised"
    OTHER_CLIENT = "client_or_taxpayer_differs"
    SCOPE_ENDED = "scope_ended"
    PERMISSION_ENDED = "permission_ended"


class TokenFacts(Value):
    """What the database knows now of one token."""

    login: Facts | None  # the present facts of the login that it was issued for; None: not recorded
    has_index: bool  # its index still belongs to that login: what ends a token takes its index away
    is_revoked: bool = False
    key_is_compromised: bool = False


def status_of(
    token: AccessToken, facts: TokenFacts, *, known_scopes: Collection[str], at: datetime
) -> str:
    """ACTIVE if it was not ended and the same login would get it at this moment; or why not.

    The reason is an InactiveReason, or that of the login's refusal: what refuses it now is named
    before what once ended it.
    """
    if facts.login is None:
        return InactiveReason.NOT_RECORDED
    if facts.is_revoked:
        return InactiveReason.REVOKED
    if facts.key_is_compromised:
        return InactiveReason.KEY_COMPROMISED
    try:
        now = decide(
            AuthorizationRequest(
                facts.login, token.scopes, tuple(known_scopes), at, token.confirmation
            )
        )
    except Refused as refused:
        return refused.reason
    actor = str(now.actor) if now.actor else None
    if (now.client_id, now.subject, actor) != (token.client_id, token.subject, token.actor):
        return InactiveReason.OTHER_CLIENT
    if not set(token.scopes) <= set(now.scopes):
        return InactiveReason.SCOPE_ENDED
    if not set(token.permissions) <= set(now.permissions):
        return InactiveReason.PERMISSION_ENDED
    return ACTIVE if facts.has_index else InactiveReason.ENDED
