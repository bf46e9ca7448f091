"""The parts of a JWT that a client has signed: JSON and bytes in base64url (RFC 7515). Pure.

Of assertions and of DPoP proofs. Who may sign, and with what, is for the caller.
"""

import base64
import re
from typing import TypeVar

import msgspec

Part = TypeVar("Part", bound=msgspec.Struct)

_PARTS = 3
_BASE64URL = re.compile("[A-Za-z0-9_-]*")  # RFC 7515 section 2


class UnreadableJws(ValueError):
    """It does not have three parts, or one of them is not what it must be."""


def parts_of(text: str) -> tuple[str, str, str]:
    """Header, payload and signature, still encoded. Raises UnreadableJws."""
    parts = text.split(".")
    if len(parts) != _PARTS:
        raise UnreadableJws
    return parts[0], parts[1], parts[2]


def read_json(part: str, kind: type[Part]) -> Part:
    """A header or payload of this shape. Raises UnreadableJws."""
    try:
        return msgspec.json.decode(read_bytes(part), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UnreadableJws from None


def read_bytes(part: str) -> bytes:
    """Raises UnreadableJws."""
    if not _BASE64URL.fullmatch(part):  # Python's decoder also takes base64 and padding
        raise UnreadableJws
    try:
        return base64.urlsafe_b64decode(part + "==")  # it ignores what is more than needed
    except ValueError:
        raise UnreadableJws from None
