"""A DPoP proof that came with an access token, checked as RFC 9449 section 4.3 says. Pure."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jwt
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from einvoicing_tokens.dpop.target import comparable
from einvoicing_tokens.errors import ALGORITHMS_OF_PROOFS, InvalidProof

MAX_LENGTH = 4096
MAX_JTI_LENGTH = 128
MAX_AGE_SECONDS = 60
SKEW_SECONDS = 10  # by which the clock of a client may be ahead

_JWS = jwt.PyJWS(algorithms=ALGORITHMS_OF_PROOFS)
_RSA_BITS = range(2048, 4096 + 1)
# The algorithm of each kind of key, its name on curves, and what its thumbprint is made of.
_KINDS: Mapping[str, tuple[str, str | None, Any, tuple[str, ...]]] = {
    "EC": ("ES256", "P-256", ECAlgorithm, ("crv", "kty", "x", "y")),
    "OKP": ("EdDSA", "Ed25519", OKPAlgorithm, ("crv", "kty", "x")),
    "RSA": ("PS256", None, RSAAlgorithm, ("e", "kty", "n")),
}
_NEW_NAMES = {"Ed25519": "EdDSA"}  # RFC 9864: libraries send either
_JWS.register_algorithm("Ed25519", OKPAlgorithm())
_PRIVATE = {"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"}


@dataclass(frozen=True)
class ProvedRequest:
    """What a proof must be made for: the method and path of a request, and its headers `DPoP`.

    Give every header of that name, as for `Authorization`. `certificate` (DER) is the one with
    which the client connected, verified by the server that ended TLS; None without one.
    """

    method: str
    path: str
    proofs: Sequence[str | None] = field(default=(), repr=False)
    certificate: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Proof:
    """A proof for a request and its token; `name` is unique to it."""

    name: str
    expires_at: float


def verified_proof(
    request: ProvedRequest, *, address: str, token: str, thumbprint: str, at: float
) -> Proof:
    """The proof of a request that came to `address` with this token. Raises InvalidProof.

    `thumbprint` is that of the key that the token is bound to (`jkt`), `at` in Unix seconds.
    """
    header, claims, encoded = _read(request.proofs)
    if header.get("typ") != "dpop+jwt":
        raise InvalidProof("typ in the header of the proof must be dpop+jwt.")
    named = str(header.get("alg"))
    algorithm = _NEW_NAMES.get(named, named)
    if algorithm not in ALGORITHMS_OF_PROOFS or "crit" in header:
        raise InvalidProof("The proof must be signed with ES256, PS256 or EdDSA, and have no crit.")
    _check_request(claims, request.method, address + request.path)
    issued_at = _check_time(claims, at)
    if not _is_same(claims.get("ath"), _encoded(hashlib.sha256(token.encode()).digest())):
        raise InvalidProof("ath of the proof is not the hash of the access token.")
    key, own_thumbprint = _key(header.get("jwk"), algorithm)
    if not _is_same(own_thumbprint, thumbprint):
        raise InvalidProof("The proof is signed with another key than the token is bound to.")
    try:
        _JWS.decode(encoded, key.key, algorithms=[named])
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise InvalidProof("The signature of the proof is wrong.") from None
    name = hashlib.sha256(f"{thumbprint}\n{claims['jti']}".encode(errors="replace")).hexdigest()
    return Proof(name, issued_at + MAX_AGE_SECONDS)


def _read(headers: Sequence[str | None]) -> tuple[dict[str, Any], dict[str, Any], str]:
    present = [header.strip() for header in headers if header]
    if not present:
        raise InvalidProof("The token is bound to a key: send a proof in the header DPoP.")
    if len(present) > 1 or "," in present[0]:
        raise InvalidProof("The header DPoP is sent more than once.")
    if len(present[0]) > MAX_LENGTH:
        raise InvalidProof(f"The proof in the header DPoP is longer than {MAX_LENGTH} characters.")
    parts = present[0].split(".")
    try:
        header, claims = (json.loads(_decoded(part)) for part in parts[:2])
    except (ValueError, RecursionError):
        header = claims = None
    if len(parts) != 3 or not isinstance(header, dict) or not isinstance(claims, dict):
        raise InvalidProof("The header DPoP is not a signed JWT in its compact form.")
    return header, claims, present[0]


def _check_request(claims: Mapping[str, Any], method: str, url: str) -> None:
    if claims.get("htm") != method:
        raise InvalidProof("htm of the proof is not the method of the request.")
    htu = claims.get("htu")
    wanted = comparable(url)
    if not isinstance(htu, str) or wanted is None or comparable(htu) != wanted:
        raise InvalidProof("htu of the proof is not the address of the request.")


def _check_time(claims: Mapping[str, Any], at: float) -> float:
    jti, issued_at = claims.get("jti"), claims.get("iat")
    if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI_LENGTH:
        raise InvalidProof(f"The proof must have a jti of at most {MAX_JTI_LENGTH} characters.")
    if type(issued_at) not in (int, float):
        raise InvalidProof("The proof must have iat.")
    # Written so that NaN, which is neither, is refused.
    if not at - MAX_AGE_SECONDS <= issued_at <= at + SKEW_SECONDS:  # type: ignore[operator]
        raise InvalidProof(
            "iat of the proof is more than 60 seconds ago or in the future, by the clock of this"
            " API. Make a new proof for each request."
        )
    return float(issued_at)  # type: ignore[arg-type]


def _key(jwk: Any, algorithm: str) -> tuple[jwt.PyJWK, str]:
    try:
        kind, curve, reader, members = _KINDS[jwk["kty"]]
        if kind != algorithm or jwk.get("crv") != curve or _PRIVATE & jwk.keys():
            raise ValueError("another kind of key")
        public = {name: jwk[name] for name in members}
        key = jwt.PyJWK(public, algorithm)
        if kind == "PS256" and (key.key.key_size not in _RSA_BITS or _exponent(key) != 65537):
            raise ValueError("too short, too long, or another exponent")
        # As the library writes the numbers: a thumbprint has one form.
        written = json.loads(reader.to_jwk(key.key))
    except (jwt.PyJWTError, LookupError, TypeError, ValueError, AttributeError):
        raise InvalidProof(
            "jwk in the header of the proof must be a public key of its alg: EC on P-256, RSA with"
            " 2048 to 4096 bits, or Ed25519."
        ) from None
    canonical = json.dumps({name: written[name] for name in members}, separators=(",", ":"))
    return key, _encoded(hashlib.sha256(canonical.encode()).digest())


def _exponent(key: jwt.PyJWK) -> int:
    exponent: int = key.key.public_numbers().e
    return exponent


def _is_same(sent: Any, right: str) -> bool:
    # JSON can name a character that no encoding has.
    return isinstance(sent, str) and hmac.compare_digest(
        sent.encode(errors="replace"), right.encode()
    )


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
