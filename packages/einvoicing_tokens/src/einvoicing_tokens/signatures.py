"""Signed JWTs of the identity service (RFC 7515, RFC 8725): nothing is read before that."""

import json
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jwt

# What the service signs with; the header of a token chooses none of them: its key does.
ALGORITHMS = ("ES256", "RS256", "PS256")

_JWS = jwt.PyJWS(algorithms=ALGORITHMS)


class NotVerified(ValueError):
    """A text that is no JWT of the wanted type, or that no key of the service has signed."""


class Verified(NamedTuple):
    """The claims of a JWT, and the `kid` of the key that signed it."""

    kid: str
    claims: dict[str, Any]


def verified(
    encoded: str, *, types: Collection[str], find_key: Callable[[str], jwt.PyJWK | None]
) -> Verified:
    """What a JWT of one of these types (`typ`) says, after its signature was verified.

    `find_key` gets the `kid` of its header. Raises NotVerified, and whatever `find_key` raises.
    """
    try:
        header = _JWS.get_unverified_header(encoded)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise NotVerified("not a JWT") from None
    kid = header.get("kid")
    if header.get("typ") not in types or not isinstance(kid, str):
        raise NotVerified("a JWT of another type")
    key = find_key(kid)
    if key is None:
        raise NotVerified("a key that the service does not publish")
    try:
        # With a PyJWK, only the one algorithm of that key is accepted.
        payload = _JWS.decode(encoded, key, algorithms=[key.algorithm_name])
        claims = json.loads(payload)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise NotVerified("the signature is not valid") from None
    if not isinstance(claims, dict):
        raise NotVerified("the claims are no object")
    return Verified(kid, claims)
