"""The claims of an access token, and its lifetime (contract 2, RFC 9068 section 2.2). Pure."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import Authorization
from tokens.access_tokens.binding import confirmation_claim
from tokens.access_tokens.status_claim import claims_of_token
from tokens.lifetime import TOKEN_LIFETIME


def access_token_claims(
    authorization: Authorization,
    *,
    issuer: str,
    jti: str,
    status_index: int,
    audiences: Mapping[str, str],
    lifetime: timedelta = TOKEN_LIFETIME,
) -> dict[str, Any]:
    """The claims of the token for this authorization, issued at its `at`, in whole seconds.

    `audiences` maps each granted scope to its audience; raises KeyError for a scope without one.
    `status` names the token's place in the status lists (`tokens/status_lists/`).
    `act` (RFC 8693 section 4.1) and `permissions` exist only if an actor acts for the subject,
    `cnf` (RFC 7800) only if the token is bound to something.
    """
    issued_at = int(authorization.at.timestamp())
    claims: dict[str, Any] = {
        "iss": issuer,
        "sub": str(authorization.subject),
        "aud": _audience(authorization.scopes, audiences),
        "client_id": authorization.client_id,
        "jti": jti,
        "iat": issued_at,
        "exp": issued_at + int(lifetime.total_seconds()),
        "scope": " ".join(authorization.scopes),
        "taxpayer": taxpayer_claim(authorization.subject),
        "status": claims_of_token(issuer, status_index),
    }
    if authorization.confirmation.binding:
        claims["cnf"] = confirmation_claim(authorization.confirmation)
    if authorization.actor is not None:
        claims["act"] = {"sub": str(authorization.actor)}
        claims["permissions"] = list(authorization.permissions)
    return claims


def taxpayer_claim(taxpayer: TaxpayerId) -> dict[str, str]:
    """TIN, and ROB number where there is one; no names, because others can read a token."""
    return {"tin": taxpayer.tin, "rob": taxpayer.rob} if taxpayer.rob else {"tin": taxpayer.tin}


def _audience(scopes: tuple[str, ...], audiences: Mapping[str, str]) -> str | list[str]:
    # Each audience once, in the order of the scopes; a single one is a string (RFC 7519 4.1.3).
    distinct = list(dict.fromkeys(audiences[scope] for scope in scopes))
    return distinct[0] if len(distinct) == 1 else distinct
