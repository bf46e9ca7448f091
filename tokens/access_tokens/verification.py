"""Is this an access token of ours, and what may its bearer do? (RFC 9068 section 4). Pure."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import jwt

from taxpayers.facts.token_binding import UNBOUND, Confirmation
from taxpayers.identifiers import TaxpayerId
from taxpayers.value import Hidden, Value
from tokens.access_tokens.claims import read_confirmation
from tokens.keys.ring import Key, KeyRing

# A node whose clock is ahead may have issued the token "in the future". Expiry has no such leeway.
CLOCK_SKEW = timedelta(seconds=60)

_REQUIRED = ["iss", "sub", "aud", "client_id", "jti", "iat", "exp", "scope", "taxpayer"]
_NOT_OURS = (
    "The token was not issued by this service, or was changed on the way, or belongs to the other"
    " environment. Log in again."
)
# What parsing a text that is not our token, or claims of another shape, may raise.
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


class InvalidToken(Exception):
    """A token that is not accepted; the message tells the caller why."""


class AccessToken(Value):
    """A verified token: the represented taxpayer, who acts, what it may do, until when."""

    subject: TaxpayerId
    actor: str | None  # None: the taxpayer acts for itself, and permissions do not limit it
    client_id: str
    jti: str
    scopes: tuple[str, ...]
    permissions: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime
    confirmation: Confirmation = UNBOUND  # what the sender must also prove to possess
    claims: Hidden[dict[str, Any]] = {}  # as signed


def verify(
    token: str, ring: KeyRing, *, issuer: str, audiences: Collection[str], at: datetime
) -> AccessToken:
    """The token's content, if a published key signed it and it is valid at this moment.

    Raises InvalidToken, whatever the text is; at its `exp` it has expired (RFC 7519 4.1.4).
    """
    try:
        key = _key_of(token, KeyRing(ring.published(at)))
        claims = jwt.decode(
            token,
            _prepared(tuple(key.public_jwk.items())),
            algorithms=[key.alg],
            issuer=issuer,
            audience=audiences,
            # The moment is an argument here; PyJWT would read the clock.
            options={"require": _REQUIRED, "verify_exp": False, "verify_iat": False},
        )
        access_token = _access_token(claims)
    except (jwt.InvalidTokenError, *_MALFORMED):
        raise InvalidToken(_NOT_OURS) from None
    if at >= access_token.expires_at:
        expired_at = f"{access_token.expires_at:%Y-%m-%dT%H:%M:%SZ}"
        raise InvalidToken(f"The token expired at {expired_at}. Log in again.")
    if access_token.issued_at > at + CLOCK_SKEW:
        raise InvalidToken(_NOT_OURS)
    return access_token


def _key_of(token: str, ring: KeyRing) -> Key:
    header = jwt.get_unverified_header(token)
    if header.get("typ") != "at+jwt":  # RFC 9068 section 4: any other kind of JWT is refused
        raise ValueError("not an access token")
    key = ring.find(header.get("kid", ""))
    if key is None:
        raise LookupError("not our key")
    return key


@lru_cache(maxsize=16)
def _prepared(public_jwk: tuple[tuple[str, str], ...]) -> jwt.PyJWK:
    # To prepare a key takes longer than to check a signature.
    return jwt.PyJWK(dict(public_jwk))


def _access_token(claims: dict[str, Any]) -> AccessToken:
    taxpayer, actor = claims["taxpayer"], claims.get("act")
    return AccessToken(
        subject=TaxpayerId(taxpayer["tin"], taxpayer.get("rob", "")),
        actor=actor["sub"] if actor else None,
        client_id=claims["client_id"],
        jti=claims["jti"],
        scopes=tuple(claims["scope"].split()),
        permissions=tuple(claims.get("permissions", ())),
        issued_at=datetime.fromtimestamp(claims["iat"], UTC),
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
        confirmation=read_confirmation(claims.get("cnf")),
        claims=claims,
    )
