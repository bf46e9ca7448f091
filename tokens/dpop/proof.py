"""A DPoP proof: a JWT by which a client proves possession of a key (RFC 9449 section 4). Pure.

The checks of section 4.3, the cheapest first; the signature comes last. Whether it was used before
is for its caller, who stores it. Addresses are compared as in RFC 3986 section 6.2.
"""

import base64
import hashlib
import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit
from uuid import UUID

import msgspec

from taxpayers import client_keys
from taxpayers.value import Hidden, Value
from tokens.client_auth import compact_jws

_DEFAULT_PORTS = {"http": 80, "https": 443}
_ESCAPED_DOT = re.compile("%2e", re.IGNORECASE)  # in a segment that names a folder


def is_same_target(htu: str, address: str) -> bool:
    """Whether both name the same resource of HTTP; query and fragment do not count."""
    normalized = _normalized(htu)
    return normalized is not None and normalized == _normalized(address)


def _normalized(address: str) -> tuple[str, str, int, str] | None:
    try:
        parts = urlsplit(address)
        port = parts.port
        path = _in_one_form(urljoin("/", _ESCAPED_DOT.sub(".", parts.path)) or "/")
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), parts.hostname  # which is in lower case
    if scheme not in _DEFAULT_PORTS or not host or "@" in parts.netloc:
        return None
    return scheme, host, port or _DEFAULT_PORTS[scheme], path


def _in_one_form(path: str) -> str:
    # Django decodes a path before a view sees it, so it is unknown whether ":" was escaped.
    return "/".join(quote(unquote_to_bytes(part), safe="") for part in path.split("/"))


HEADER = "DPoP"
TYPE = "dpop+jwt"
MAX_LENGTH = 4096
MAX_JTI_LENGTH = 128
MAX_AGE = timedelta(seconds=60)
SKEW = timedelta(seconds=10)  # by which a client's clock may be ahead


class ProofFault(StrEnum):
    """What is wrong with a proof."""

    REPEATED = "proof_repeated"
    TOO_LONG = "proof_too_long"
    UNREADABLE = "proof_unreadable"
    TYPE = "proof_type"
    ALGORITHM = "proof_algorithm"
    CRITICAL = "proof_critical"
    METHOD = "proof_htm"
    TARGET = "proof_htu"
    JTI = "proof_without_jti"
    ISSUED_AT = "proof_without_iat"
    TOO_OLD = "proof_too_old"
    NOT_YET_VALID = "proof_iat_in_future"
    TOKEN = "proof_of_other_token"
    KEY = "proof_key"
    OTHER_KEY = "proof_of_other_key"
    SIGNATURE = "proof_signature"
    USED_BEFORE = "proof_used_before"


class InvalidProof(Exception):
    """A proof that proves nothing."""

    def __init__(self, fault: ProofFault) -> None:
        super().__init__(fault)
        self.fault = fault


class Proof(Value):
    """A proof whose form is right. It proves nothing before `verified_thumbprint`."""

    algorithm: str
    jwk: Hidden[bytes]  # its key as sent, in JSON
    jti: Hidden[str]
    issued_at: float  # in seconds since the epoch
    nonce: str  # empty: none
    ath: str  # the hash of an access token; empty: none
    signed: Hidden[bytes]
    signature: Hidden[bytes]

    @property
    def last_moment(self) -> datetime:
        """The last moment at which it could be accepted."""
        return datetime.fromtimestamp(self.issued_at, UTC) + MAX_AGE

    def use_id(self, client_id: str, thumbprint: str) -> UUID:
        """The same for all proofs of this client and key with this `jti`: one is accepted."""
        text = f"{client_id}\n{thumbprint}\n{self.jti}".encode(errors="surrogatepass")
        return UUID(bytes=hashlib.blake2b(text, digest_size=16).digest())


class _Header(msgspec.Struct):
    typ: str = ""
    alg: str = ""
    jwk: msgspec.Raw = msgspec.Raw(b"null")
    crit: Any = None


class _Claims(msgspec.Struct):
    jti: str = ""
    htm: str = ""
    htu: str = ""
    iat: float | None = None
    nonce: str = ""
    ath: str = ""


def read_proof(sent: str, *, method: str, address: str, at: datetime) -> Proof:
    """The proof in the header, made for this request at this time. Raises InvalidProof."""
    if "," in sent:  # how headers that come twice are joined; no JWT has one
        raise InvalidProof(ProofFault.REPEATED)
    if len(sent) > MAX_LENGTH:
        raise InvalidProof(ProofFault.TOO_LONG)
    try:
        return _read(sent.strip(), method, address, at)
    except compact_jws.UnreadableJws:
        raise InvalidProof(ProofFault.UNREADABLE) from None


def _read(sent: str, method: str, address: str, at: datetime) -> Proof:
    encoded_header, encoded_claims, encoded_signature = compact_jws.parts_of(sent)
    header = compact_jws.read_json(encoded_header, _Header)
    _check_header(header)
    claims = compact_jws.read_json(encoded_claims, _Claims)
    issued_at = _check_claims(claims, method, address, at)
    return Proof(
        algorithm=client_keys.algorithm_of(header.alg),
        jwk=bytes(header.jwk),
        jti=claims.jti,
        issued_at=issued_at,
        nonce=claims.nonce,
        ath=claims.ath,
        signed=f"{encoded_header}.{encoded_claims}".encode(),
        signature=compact_jws.read_bytes(encoded_signature),
    )


# A login that is decided again, because its client has changed, is verified once.
@lru_cache(maxsize=256)
def verified_thumbprint(proof: Proof) -> str:
    """The thumbprint of the key (RFC 7638), whose owner has signed it. Raises InvalidProof."""
    key, thumbprint, algorithm = _key(proof.jwk)
    if proof.algorithm != algorithm:
        raise InvalidProof(ProofFault.ALGORITHM)
    if not compact_jws.is_signature(key, proof.signature, proof.signed):
        raise InvalidProof(ProofFault.SIGNATURE)
    return thumbprint


def hash_of_token(token: str) -> str:
    """The claim `ath` of a proof that is sent with this access token."""
    digest = hashlib.sha256(token.encode("ascii", errors="replace")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _check_header(header: _Header) -> None:
    if header.typ != TYPE:
        raise InvalidProof(ProofFault.TYPE)
    if header.alg not in client_keys.ALGORITHM_NAMES:
        raise InvalidProof(ProofFault.ALGORITHM)
    if header.crit is not None:
        raise InvalidProof(ProofFault.CRITICAL)


def _check_claims(claims: _Claims, method: str, address: str, at: datetime) -> float:
    if claims.htm != method:
        raise InvalidProof(ProofFault.METHOD)
    if not is_same_target(claims.htu, address):
        raise InvalidProof(ProofFault.TARGET)
    if not 0 < len(claims.jti) <= MAX_JTI_LENGTH:
        raise InvalidProof(ProofFault.JTI)
    if claims.iat is None:
        raise InvalidProof(ProofFault.ISSUED_AT)
    now = at.timestamp()
    if claims.iat + MAX_AGE.total_seconds() < now:
        raise InvalidProof(ProofFault.TOO_OLD)
    if claims.iat - SKEW.total_seconds() > now:
        raise InvalidProof(ProofFault.NOT_YET_VALID)
    return claims.iat


@lru_cache(maxsize=1024)  # to load a key takes as long as to check a signature
def _key(jwk: bytes) -> tuple[client_keys.PublicKey, str, str]:
    try:
        members = msgspec.json.decode(jwk, type=dict[str, Any])
        key, thumbprint = client_keys.read_public_jwk(members)
    except (msgspec.DecodeError, UnicodeDecodeError, client_keys.UnusableKey, RecursionError):
        raise InvalidProof(ProofFault.KEY) from None
    return key, thumbprint, client_keys.ALGORITHMS[members["kty"]]
