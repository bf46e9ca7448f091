"""A key of the fuzzer: it signs any header and any claims, and finds what it has signed.

Its signatures are deterministic, so that a seed repeats its inputs.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# It begins where a word does: so long words without a dot take no time. Anything may follow its 64
# bytes of a signature: another request, for example.
_JWT = re.compile(rb"(?<![A-Za-z0-9_-])([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})")

_NESTED = re.compile(r"\[{2,}\]{2,}")  # deeper, perhaps, than the parser of this process can read


def encode(data: bytes) -> bytes:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def decode(text: bytes) -> bytes:
    """What `encode` has made. Raises ValueError."""
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


def members_of(part: bytes) -> dict[str, Any]:
    """The header or the claims in a part of a JWT; empty if there are none."""
    try:
        text = decode(part).decode(errors="replace")  # of what it does not need, a reader may skip
        members = json.loads(_NESTED.sub("[]", text))
    except ValueError:
        return {}
    return members if isinstance(members, dict) else {}


def raw_object(members: dict[str, bytes]) -> bytes:
    """JSON whose values are any bytes."""
    return b"{" + b",".join(b'"%b":%b' % (k.encode(), v) for k, v in members.items()) + b"}"


class Signer:
    """An Ed25519 key; the same one for the same name."""

    def __init__(self, name: str) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())
        self._public_key = self._key.public_key()
        x = encode(self._public_key.public_bytes_raw()).decode()
        self.jwk = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": x}, separators=(",", ":"))
        self.thumbprint = encode(hashlib.sha256(self.jwk.encode()).digest()).decode()  # RFC 7638

    def sign(self, header: bytes, claims: bytes) -> bytes:
        """A JWT of this header and these claims, whatever they are."""
        signed = encode(header) + b"." + encode(claims)
        return signed + b"." + encode(self._key.sign(signed))

    def found_in(self, data: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """Each JWT in these bytes that this key has signed, and its claims."""
        for match in _JWT.finditer(data):
            header, claims, signature = match.groups()
            try:
                self._public_key.verify(decode(signature), header + b"." + claims)
            except (ValueError, InvalidSignature):
                continue
            yield match[0], members_of(claims)


RIGHT, OTHER = Signer("right"), Signer("other")
