"""The claims of an access token, and its lifetime (contract 2, RFC 9068 section 2.2). Pure.

`status` is its index in the status lists (TSL 6.2), `cnf` what it is bound to (RFC 7800 3.1).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from taxpayers.facts.token_binding import UNBOUND, Confirmation, TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import Authorization
from tokens.lifetime import TOKEN_LIFETIME

LIST_LENGTH = 2**20  # indexes of one list: 128 KiB before it is compressed


PATH = "/status"
_HIGHEST = 2**63 - 1  # what a column of the database takes


def claims_of_token(issuer: str, index: int) -> dict[str, Any]:
    """The claim `status` of a token with this index (section 6.2)."""
    number, idx = divmod(index, LIST_LENGTH)
    return {"status_list": {"idx": idx, "uri": list_uri(issuer, number)}}


def index_of_claims(claims: Mapping[str, Any]) -> int | None:
    """The index of a token that was verified; None for one from before there were any."""
    status = claims.get("status")
    if status is None:
        return None
    named = status["status_list"]
    return index_in_list(named["uri"], named["idx"])


def index_in_list(uri: str, idx: int) -> int:
    """The index at this place of a list. Raises ValueError if no index can be meant."""
    index = int(uri.rpartition("/")[2]) * LIST_LENGTH + idx
    if not 0 <= index <= _HIGHEST:
        raise ValueError(uri, idx)
    return index


def list_uri(issuer: str, number: int) -> str:
    """The address of a list, which is also its name."""
    return f"{issuer}{PATH}/{number}"


_MEMBERS = {TokenBinding.DPOP: "jkt", TokenBinding.TLS: "x5t#S256"}  # RFC 9449, RFC 8705


def token_type(confirmation: Confirmation) -> str:
    """How such a token is sent (RFC 6749 section 7.1): one bound to a certificate is a Bearer."""
    return "DPoP" if confirmation.binding == TokenBinding.DPOP else "Bearer"


def read_confirmation(claim: Any) -> Confirmation:
    """What the claim says; None: no binding. Raises ValueError for one that we do not write."""
    if claim is None:
        return UNBOUND
    for binding, member in _MEMBERS.items():
        if isinstance(claim, dict) and claim.keys() == {member} and claim[member]:
            return Confirmation(binding, str(claim[member]))
    raise ValueError("a confirmation that is not known")


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
    `act` (RFC 8693 section 4.1) and `permissions` exist only if an actor acts for the subject,
    `cnf` only if the token is bound to something.
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
    if (proved := authorization.confirmation).binding:
        claims["cnf"] = {_MEMBERS[TokenBinding(proved.binding)]: proved.thumbprint}
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
