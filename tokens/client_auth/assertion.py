"""A client assertion: a JWT with which a client proves who it is (RFC 7523, rfc7523bis). Pure.

Everything is checked here that needs no registry, no signature and no time, the cheapest first.
"""

import hashlib
from enum import StrEnum
from uuid import UUID

import msgspec

from taxpayers.client_keys import ALGORITHM_NAMES, algorithm_of, key_name
from taxpayers.facts.values import ASSERTION
from taxpayers.rules import Refused
from taxpayers.value import Hidden, Value
from tokens.client_auth.authenticated import Method
from tokens.client_auth.compact_jws import Header, UnreadableJws, parts_of, read_bytes, read_json
from tokens.refusals.table import ProtocolReason

ASSERTION_TYPE = "client_assertion_type"
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
MAX_LENGTH = 4096
MAX_JTI_LENGTH = 128
# rfc7523bis gives it its own type; what older libraries send is accepted too, and no other
# kind of JWT that a client may have signed with the same key (RFC 8725 section 3.11).
_TYPES = {"", "jwt", "client-authentication+jwt", "application/client-authentication+jwt"}
_MILLISECONDS = 1e11  # of seconds it is the year 5138


class AssertionFault(StrEnum):
    """What is wrong with an assertion itself, from a client or a stranger."""

    TOO_LONG = "assertion_too_long"
    UNREADABLE = "assertion_unreadable"
    ALGORITHM = "assertion_algorithm"
    TYPE = "assertion_type"
    CRITICAL = "assertion_critical"
    KID = "assertion_without_kid"
    CLIENT = "assertion_iss_is_not_sub"
    OTHER_CLIENT = "assertion_of_other_client_id"
    AUDIENCE = "assertion_audience"
    EXPIRY = "assertion_without_exp"
    MILLISECONDS = "assertion_exp_in_milliseconds"
    JTI = "assertion_without_jti"
    EXPIRED = "assertion_expired"
    TOO_FAR_AHEAD = "assertion_exp_too_far_ahead"
    NOT_YET_VALID = "assertion_not_yet_valid"


class ClientAssertion(Value):
    """An assertion whose form is right. It proves nothing before its signature was verified."""

    client_id: str
    kid: str
    algorithm: str
    jti: Hidden[str]
    expires: float  # in seconds since the epoch
    valid_from: float  # the later one of `nbf` and `iat`; 0 without them
    signed: Hidden[bytes]
    signature: Hidden[bytes]
    method: Method = Method.PRIVATE_KEY_JWT

    @property
    def lookup(self) -> str:
        """What the key is looked up by, where a secret is looked up by its hash."""
        return key_name(self.kid)

    @property
    def denial_key(self) -> str:
        """Key for remembered denials: the hash of this assertion."""
        return hashlib.sha256(self.signed + self.signature).hexdigest()

    @property
    def use_id(self) -> UUID:
        """The same for all assertions of this client with this `jti`: one of them is accepted."""
        text = f"{self.client_id}\n{self.jti}".encode()
        return UUID(bytes=hashlib.blake2b(text, digest_size=16).digest())


class SentAssertion(Value):
    """The parameters of a request that are to prove who the client is; each may be empty."""

    client_id_parameter: str
    assertion: Hidden[str]
    assertion_type: str

    @property
    def parameters(self) -> dict[str, str]:
        """Those that must be there."""
        return {ASSERTION: self.assertion, ASSERTION_TYPE: self.assertion_type}

    @property
    def client_id(self) -> str:
        """For the record of a request that cannot be read: the parameter, or an unproved `sub`."""
        if self.client_id_parameter:
            return self.client_id_parameter
        try:
            return read_json(self.assertion.split(".")[1], _Claims).sub
        except (UnreadableJws, IndexError):
            return ""


class _Claims(msgspec.Struct):
    iss: str = ""
    sub: str = ""
    aud: str | list[str] = ""
    exp: float | None = None
    nbf: float = 0
    iat: float = 0
    jti: str = ""


def read_assertion(sent: SentAssertion, issuer: str) -> ClientAssertion:
    """The assertion, meant for this issuer. Raises Refused with the first fault of its form."""
    if len(sent.assertion) > MAX_LENGTH:
        raise refused(AssertionFault.TOO_LONG)
    try:
        return _read(sent, issuer)
    except UnreadableJws:
        raise refused(AssertionFault.UNREADABLE) from None


def _read(sent: SentAssertion, issuer: str) -> ClientAssertion:
    encoded_header, encoded_claims, encoded_signature = parts_of(sent.assertion)
    header = read_json(encoded_header, Header)
    _check_header(header)
    claims = read_json(encoded_claims, _Claims)
    expires = _check_claims(claims, sent.client_id_parameter, issuer)
    return ClientAssertion(
        client_id=claims.sub,
        kid=header.kid,
        algorithm=algorithm_of(header.alg),
        jti=claims.jti,
        expires=expires,
        valid_from=max(claims.nbf, claims.iat),
        signed=f"{encoded_header}.{encoded_claims}".encode(),
        signature=read_bytes(encoded_signature),
    )


def refused(fault: AssertionFault) -> Refused:
    """The refusal of an assertion with this fault, which every sender gets."""
    return Refused(ProtocolReason.MALFORMED_CREDENTIALS, parameter=ASSERTION, detail=fault)


def _check_header(header: Header) -> None:
    if header.alg not in ALGORITHM_NAMES:
        raise refused(AssertionFault.ALGORITHM)
    if header.typ.lower() not in _TYPES:
        raise refused(AssertionFault.TYPE)
    if header.crit is not None:
        raise refused(AssertionFault.CRITICAL)
    # Printable, as those that are registered: so what it is compared with can be any text.
    if not header.kid or not header.kid.isascii() or not header.kid.isprintable():
        raise refused(AssertionFault.KID)


def _check_claims(claims: _Claims, client_id: str, issuer: str) -> float:
    if not claims.sub or claims.iss != claims.sub:
        raise refused(AssertionFault.CLIENT)
    if client_id not in ("", claims.sub):
        raise refused(AssertionFault.OTHER_CLIENT)
    # The address of the endpoint, or one more audience, would let another server that the client
    # trusts log in here with what it was sent.
    if claims.aud not in (issuer, [issuer]):
        raise refused(AssertionFault.AUDIENCE)
    if claims.exp is None:
        raise refused(AssertionFault.EXPIRY)
    if max(claims.exp, claims.nbf, claims.iat) > _MILLISECONDS:
        raise refused(AssertionFault.MILLISECONDS)
    if not 0 < len(claims.jti) <= MAX_JTI_LENGTH:
        raise refused(AssertionFault.JTI)
    return claims.exp
