"""Which proofs were used: each opens this API once (RFC 9449 section 11.1)."""

import threading
from typing import Protocol

from einvoicing_tokens.errors import unavailable

MOST_PROOFS = 100_000  # about 10 MB, and more than 1,000 requests a second


class UsedProofs(Protocol):
    """Where the uses are stored. One that all processes share sees a proof once in all of them."""

    def is_first(self, name: str, expires_at: float, at: float) -> bool:
        """Stores the use until `expires_at`; False if it was stored before. In Unix seconds."""


class UsedProofsOfProcess:
    """Those that this process has seen. When there are too many at once, nothing is accepted."""

    def __init__(self, most: int = MOST_PROOFS) -> None:
        self._most = most
        self._expires_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def is_first(self, name: str, expires_at: float, at: float) -> bool:
        """Raises Unavailable rather than forget one that could be sent again."""
        with self._lock:
            if self._expires_at.get(name, at) > at:
                return False
            if len(self._expires_at) >= self._most:
                live = {n: end for n, end in self._expires_at.items() if end > at}
                self._expires_at = live
                if len(live) >= self._most:
                    raise unavailable("too many requests with bound tokens")
            self._expires_at[name] = expires_at
            return True
