"""Where the identity service has its keys and answers questions (RFC 8414)."""

import json
from typing import Any

from einvoicing_tokens.errors import unavailable
from einvoicing_tokens.issuer.cache import Cache, Fetched
from einvoicing_tokens.issuer.source import Source

JSON = "application/json"
_PATH = "/.well-known/oauth-authorization-server"
_FRESH_SECONDS, _USABLE_SECONDS, _PAUSE_SECONDS = 300.0, 86_400.0, 5.0


class Metadata:
    """The addresses that the issuer publishes; all must be its own."""

    def __init__(self, issuer: str, source: Source) -> None:
        self._issuer = issuer
        self.cache = Cache(
            source, lambda: issuer + _PATH, JSON, self._read, pause_seconds=_PAUSE_SECONDS
        )

    def address(self, name: str) -> str:
        """The address with this name, for example `jwks_uri`. Raises Unavailable."""
        address = self.cache.get().get(name)
        if not isinstance(address, str) or not address.startswith(f"{self._issuer}/"):
            raise unavailable(f"the metadata of {self._issuer} have no {name} of their issuer")
        return address

    def _read(self, body: bytes, url: str, age: float) -> Fetched[dict[str, Any]]:
        metadata = json_object(body, url)
        if metadata.get("issuer") != self._issuer:  # RFC 8414 section 3.3
            raise unavailable(f"the metadata of {self._issuer} are those of another issuer")
        return Fetched(metadata, _FRESH_SECONDS, _USABLE_SECONDS)


def json_object(body: bytes, url: str) -> dict[str, Any]:
    """The body as a JSON object. Raises Unavailable if it is none."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise unavailable(f"{url} answered no JSON object")
    return parsed
