"""The published keys of the identity service (RFC 7517), found through its metadata."""

from typing import Any

import jwt

from einvoicing_tokens.errors import unavailable
from einvoicing_tokens.issuer.cache import Cache, Fetched
from einvoicing_tokens.issuer.metadata import JSON, Metadata, json_object
from einvoicing_tokens.issuer.source import Source
from einvoicing_tokens.signatures import ALGORITHMS

# A key that was stopped as compromised is accepted for so long at most.
FRESH_SECONDS = 60.0
# While the service is away: no token that it had signed before is left after that.
USABLE_SECONDS = 3600.0
# Between two fetches for unknown keys: an attacker can send any number of key ids.
PAUSE_SECONDS = 5.0


class Keys:
    """The public keys by their `kid`."""

    def __init__(self, metadata: Metadata, source: Source) -> None:
        self.cache = Cache(
            source,
            lambda: metadata.address("jwks_uri"),
            JSON,
            _keys_of,
            pause_seconds=PAUSE_SECONDS,
        )

    def find(self, kid: str) -> jwt.PyJWK | None:
        """The key with this `kid`, also if it was published a moment ago; None: there is none.

        Raises Unavailable if that cannot be known.
        """
        return self.known(kid) or self.cache.newer().get(kid)

    def known(self, kid: str) -> jwt.PyJWK | None:
        """The same, from what is known. Raises Unavailable if nothing is."""
        return self.cache.get().get(kid)


def _keys_of(body: bytes, url: str, age: float) -> Fetched[dict[str, jwt.PyJWK]]:
    published = json_object(body, url).get("keys")
    jwks = published if isinstance(published, list) else []
    keys = {key.key_id: key for jwk in jwks if (key := _verification_key(jwk)) and key.key_id}
    if not keys:
        raise unavailable(f"{url} has no key of a kind that is accepted")
    return Fetched(keys, FRESH_SECONDS, USABLE_SECONDS)


def _verification_key(jwk: Any) -> jwt.PyJWK | None:
    """The key for signatures of the accepted algorithms; None for any other: it may come later."""
    if not isinstance(jwk, dict) or jwk.get("alg") not in ALGORITHMS:
        return None
    if jwk.get("use", "sig") != "sig" or not isinstance(jwk.get("kid"), str):
        return None
    try:
        return jwt.PyJWK(jwk)
    except (jwt.PyJWTError, LookupError, TypeError, ValueError):
        return None
