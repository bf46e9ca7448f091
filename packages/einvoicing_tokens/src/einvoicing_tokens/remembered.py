"""Tokens whose signature was verified a moment ago: clients send the same one for an hour.

The signature is most of what a check costs. Time, status and key are checked each time.
"""

import threading
from collections import OrderedDict
from hashlib import sha256
from typing import Generic, TypeVar

Value = TypeVar("Value")

MOST = 10_000  # tokens; the one that was not sent for the longest time is forgotten first


class Remembered(Generic[Value]):
    """Values by the SHA-256 of a text, which itself is not stored. Threads may share it."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._values: OrderedDict[bytes, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> Value | None:
        """The value that was stored for exactly this text."""
        key = _key(text)
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, text: str, value: Value) -> None:
        """Remember it."""
        with self._lock:
            self._values[_key(text)] = value
            if len(self._values) > self._most:
                self._values.popitem(last=False)


def _key(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
