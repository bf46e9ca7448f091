"""The credentials that inputs carry: what logs in, what does not, and nothing of it may come back.

In a corpus placeholders of the same length stand for them, so that lengths in a request stay right.
Of assertions and proofs there is a new one for each placeholder, which is made when it is filled.
"""

import base64
import binascii
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any
from urllib.parse import unquote_to_bytes

from proofs.fuzz.signed.certificates import certificates, escaped_pem, rfc9440
from proofs.fuzz.signed.signer import RIGHT, encode, raw_object

CLIENT_ID = b"ci_test_" + b"I" * 28
CLIENT_SECRET = b"cs_test_" + b"S" * 49
WRONG_SECRET = b"cs_test_" + b"W" * 49
ACCESS_TOKEN = b"<access_token>"
SPARE_TOKEN = b"<spare_token>"  # of the same client; it may be revoked
REPRESENTED = b"<represented>"
KEY_CLIENT_ID = b"ci_test_" + b"K" * 28  # logs in with assertions
BOUND_CLIENT_ID = b"ci_test_" + b"B" * 28  # its tokens are bound to a key
BOUND_SECRET = b"cs_test_" + b"B" * 49
BOUND_TOKEN = b"<bound_token>"
TLS_CLIENT_ID = b"ci_test_" + b"T" * 28  # logs in with a certificate
CERTIFICATE = b"<certificate>"  # as nginx writes it
CLIENT_CERT = b"<client_cert>"  # as in RFC 9440
JWT_BEARER = b"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
KEY_NAME = "key-1"
LOGIN_PATH = "/connect/token"

_SIGNED = re.compile(rb"<(assertion|proof)\.([0-9a-f]{16})\.(?:(/[!-;=?-~]*)\.)?_*>")
_ASSERTION_TYPE = b'"client-authentication+jwt"'
_LIFETIME_SECONDS = 60
_BETWEEN_CHUNKS = re.compile(rb"\r\n(?!0+[;\r])[0-9A-Fa-f]+[^\r\n]*\r\n")
_BASIC = re.compile(rb"basic\s+([0-9A-Za-z+/=]+)", re.IGNORECASE)
_WINDOW = 16  # so much of a secret in a row must not be seen anywhere
_HALF_A_SIGNATURE = 43  # less of a token is of no use to others
_PREFIX = len(b"cs_test_")

RawMembers = tuple[dict[str, bytes], dict[str, bytes]]


def basic(client_id: bytes, client_secret: bytes) -> bytes:
    """The value of a Basic header."""
    return base64.b64encode(client_id + b":" + client_secret)


def assertion(jti: str) -> bytes:
    """The placeholder of a right assertion with this `jti`, 16 hexadecimal digits."""
    return b"<assertion.%b._>" % jti.encode()


def proof(jti: str, path: bytes = b"") -> bytes:
    """The placeholder of a right DPoP proof for a login, or for the bound token at this path."""
    return b"<proof.%b.%b_>" % (jti.encode(), path + b"." if path else b"")


@dataclass
class Learned:
    """What a run has learned from answers: the latest nonce, and when each `jti` was used up."""

    nonce: str = ""
    spent: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Planted:
    """Right clients, one for each way to log in; a wrong secret; who the first may act for.

    `clock` is in seconds since the epoch.
    """

    client_id: bytes
    client_secret: bytes
    wrong_secret: bytes
    access_token: bytes
    represented: bytes
    spare_token: bytes
    key_client_id: bytes
    bound_client_id: bytes
    bound_secret: bytes
    bound_token: bytes
    tls_client_id: bytes
    issuer: str
    clock: Callable[[], float] = time.time
    learned: Learned = field(default_factory=Learned, compare=False)

    @cached_property
    def _values(self) -> dict[bytes, bytes]:
        first = certificates()[0]
        return {
            basic(CLIENT_ID, CLIENT_SECRET): basic(self.client_id, self.client_secret),
            basic(CLIENT_ID, WRONG_SECRET): basic(self.client_id, self.wrong_secret),
            basic(BOUND_CLIENT_ID, BOUND_SECRET): basic(self.bound_client_id, self.bound_secret),
            CLIENT_ID: self.client_id,
            CLIENT_SECRET: self.client_secret,
            WRONG_SECRET: self.wrong_secret,
            ACCESS_TOKEN: self.access_token,
            SPARE_TOKEN: self.spare_token,
            REPRESENTED: self.represented,
            KEY_CLIENT_ID: self.key_client_id,
            BOUND_CLIENT_ID: self.bound_client_id,
            BOUND_SECRET: self.bound_secret,
            BOUND_TOKEN: self.bound_token,
            TLS_CLIENT_ID: self.tls_client_id,
            CERTIFICATE: escaped_pem(first),
            CLIENT_CERT: rfc9440(first),
        }

    @cached_property
    def _placeholder(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(map(re.escape, self._values)))

    def fill(self, data: bytes) -> bytes:
        """The bytes with credentials for placeholders."""
        values = self._values
        data = self._placeholder.sub(lambda match: values[match[0]], data)
        return _SIGNED.sub(self._signed, data) if b"<" in data else data

    def blank(self, data: bytes) -> bytes:
        """The bytes with placeholders for credentials."""
        for placeholder, value in self._values.items():
            data = data.replace(value, placeholder)
        for signed, claims in RIGHT.found_in(data):
            found = self._placeholder_of(signed, claims)
            data = data.replace(signed, found) if found else data
        return data

    def assertion_members(self, jti: str, at: int) -> RawMembers:
        """The header and the claims of a right assertion, each value as JSON."""
        client = b'"%b"' % self.key_client_id
        header = {"alg": b'"EdDSA"', "kid": _json(KEY_NAME), "typ": _ASSERTION_TYPE}
        claims = {"iss": client, "sub": client, "aud": _json(self.issuer), "jti": _json(jti)}
        return header, claims | {"iat": b"%d" % at, "exp": b"%d" % (at + _LIFETIME_SECONDS)}

    def proof_members(self, jti: str, path: str, at: int, nonce: str) -> RawMembers:
        """The same of a right proof; an empty path: for a login."""
        header = {"typ": b'"dpop+jwt"', "alg": b'"EdDSA"', "jwk": RIGHT.jwk.encode()}
        claims = {"jti": _json(jti), "htm": b'"GET"' if path else b'"POST"'}
        claims |= {"htu": _json(self.issuer + (path or LOGIN_PATH)), "iat": b"%d" % at}
        if path:
            return header, claims | {"ath": _json(hash_of(self.bound_token))}
        return header, claims | {"nonce": _json(nonce)}

    @property
    def now(self) -> int:
        """In seconds since the epoch."""
        return int(self.clock())

    def _signed(self, match: re.Match[bytes]) -> bytes:
        jti, path = match[2].decode(), (match[3] or b"").decode()
        if match[1] == b"assertion":
            header, claims = self.assertion_members(jti, self.now)
        else:
            header, claims = self.proof_members(jti, path, self.now, self.learned.nonce)
        return RIGHT.sign(raw_object(header), raw_object(claims))

    def _placeholder_of(self, signed: bytes, claims: dict[str, Any]) -> bytes | None:
        """None if it is not a right one."""
        jti, at, nonce = (claims.get(name) for name in ("jti", "iat", "nonce"))
        if not isinstance(jti, str) or not isinstance(at, int) or not jti.isascii():
            return None
        path = str(claims.get("htu", "")).removeprefix(self.issuer) if "ath" in claims else ""
        if "htm" in claims:
            members, found = (
                self.proof_members(jti, path, at, str(nonce)),
                proof(jti, path.encode()),
            )
        else:
            members, found = self.assertion_members(jti, at), assertion(jti)
        if RIGHT.sign(*map(raw_object, members)) != signed or not _SIGNED.fullmatch(found):
            return None
        return found.replace(b"_>", b"_" * (len(signed) - len(found) + 1) + b">")

    @cached_property
    def marks(self) -> tuple[bytes, ...]:
        """Of what has 31 characters of a secret in a row, or a whole signature, one is a part."""
        secrets = (
            self.client_secret[_PREFIX:],
            self.wrong_secret[_PREFIX:],
            self.bound_secret[_PREFIX:],
            basic(self.client_id, self.client_secret)[-48:],
        )
        signatures = (token.rpartition(b".")[2] for token in (self.access_token, self.bound_token))
        return (
            *chain.from_iterable(_parts(secret, _WINDOW) for secret in secrets),
            *chain.from_iterable(_parts(text, _HALF_A_SIGNATURE) for text in signatures),
        )

    def has_right_secret(self, data: bytes) -> bool:
        """Whether a login in these bytes may get a token, however it is encoded."""
        return any(self.client_secret in reading for reading in readings(data))


def _parts(text: bytes, length: int) -> Iterator[bytes]:
    return (text[start : start + length] for start in range(0, len(text) - length + 1, length))


def readings(data: bytes) -> Iterator[bytes]:
    """What these bytes may be read as: without chunks, percent-decoded, the contents of Basic."""
    for plain in (data, _BETWEEN_CHUNKS.sub(b"", data)):
        yield plain
        yield unquote_to_bytes(plain)
    for value in _BASIC.findall(data):
        try:
            yield unquote_to_bytes(base64.b64decode(value))
        except binascii.Error:
            continue


def hash_of(token: bytes) -> str:
    """The claim `ath` of a proof for this access token (RFC 9449 section 4.2)."""
    return encode(hashlib.sha256(token).digest()).decode()


def _json(text: str) -> bytes:
    return json.dumps(text).encode()
