"""The nonce that a proof must have: no proof can be made long before it is used (RFC 9449 8). Pure.

Nothing is stored: a nonce is an authenticated number of a time window, the same on every node.
"""

import hmac
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta

WINDOW = timedelta(seconds=60)
_BYTES = 18


class Nonces:
    """Those of all nodes that have this key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def current(self, at: datetime) -> str:
        """The nonce for requests from now on; it is accepted for one to two windows."""
        return self._of(_window(at))

    def is_accepted(self, nonce: str, at: datetime) -> bool:
        """Whether it is of this window or of one beside it: another node's clock may be ahead."""
        sent = nonce.encode(errors="replace")
        near = (self._of(_window(at) + offset).encode() for offset in (0, -1, 1))
        return any(hmac.compare_digest(sent, right) for right in near)

    def _of(self, window: int) -> str:
        mac = hmac.digest(self._key, b"DPoP-Nonce %d" % window, "sha256")
        return urlsafe_b64encode(mac[:_BYTES]).decode()


def _window(at: datetime) -> int:
    return int(at.timestamp() // WINDOW.total_seconds())
