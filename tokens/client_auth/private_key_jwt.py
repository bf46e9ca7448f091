"""Client authentication with a private key: `private_key_jwt` (RFC 7523, rfc7523bis). Pure.

The signature is verified last, after everything that is cheaper. Who sends an assertion for a
client or a key that does not exist costs one verification as well, and learns nothing by time.
"""

from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from taxpayers.client_keys import RSA_BITS, PublicKey, load_key
from taxpayers.facts.values import ASSERTION, Facts
from taxpayers.rules import Refused
from tokens.client_auth.assertion import AssertionFault, ClientAssertion, refused
from tokens.client_auth.authenticated import AuthenticatedClient
from tokens.client_auth.compact_jws import is_signature
from tokens.refusals.table import USED_BEFORE, ProtocolReason

MAX_AHEAD = timedelta(minutes=5)
SKEW = timedelta(seconds=10)  # by which a client's clock may be off
_RSA_BYTES = range(RSA_BITS.start // 8, RSA_BITS.stop // 8 + 1)


def authenticate(sent: ClientAssertion, facts: Facts | None, at: datetime) -> AuthenticatedClient:
    """The client that signed it, by the facts of the client and key it names. Raises Refused."""
    _check_time(sent, at)
    if not _is_signed(sent, facts.credential.public_jwk if facts else "") or facts is None:
        raise not_accepted()
    return AuthenticatedClient(sent.method, facts)


def not_accepted(detail: str = "") -> Refused:
    """The one answer to all assertions that are not accepted."""
    return Refused(ProtocolReason.INVALID_CREDENTIALS, parameter=ASSERTION, detail=detail)


def used_before() -> Refused:
    """Only of one whose signature is right: so it may be told."""
    return not_accepted(USED_BEFORE)


def last_moment(sent: ClientAssertion) -> datetime:
    """The last moment at which an assertion whose time was checked could be accepted."""
    return datetime.fromtimestamp(sent.expires, UTC) + SKEW


def _check_time(sent: ClientAssertion, at: datetime) -> None:
    now, skew = at.timestamp(), SKEW.total_seconds()
    if sent.expires + skew < now:
        raise refused(AssertionFault.EXPIRED)
    if sent.expires - skew > now + MAX_AHEAD.total_seconds():
        raise refused(AssertionFault.TOO_FAR_AHEAD)
    if sent.valid_from - skew > now:
        raise refused(AssertionFault.NOT_YET_VALID)


# A login that is decided again, because its client has changed, is verified once: so no client sees
# by the time whether this node remembers the client.
@lru_cache(maxsize=256)
def _is_signed(sent: ClientAssertion, public_jwk: str) -> bool:
    key = load_key(public_jwk) if public_jwk else None
    if key is None or not _could_have_signed(key, sent):
        stand_in = _stand_in(sent.algorithm, len(sent.signature))
        is_signature(stand_in, sent.signature, sent.signed)
        return False
    return is_signature(key, sent.signature, sent.signed)


def _could_have_signed(key: PublicKey, sent: ClientAssertion) -> bool:
    """Whether a verification would look at more than the size of the signature."""
    if isinstance(key, ec.EllipticCurvePublicKey):
        return sent.algorithm == "ES256"
    if isinstance(key, Ed25519PublicKey):
        return sent.algorithm == "EdDSA"
    return (
        sent.algorithm == "PS256"
        and len(sent.signature) == (key.key_size + 7) // 8
        and int.from_bytes(sent.signature) < key.public_numbers().n
    )


def _stand_in(algorithm: str, signature_bytes: int) -> PublicKey:
    """A key of no client, for callers that name none; verifying with it takes as long."""
    if algorithm != "PS256":
        return _stand_in_on_a_curve(algorithm)
    return _rsa_stand_in(signature_bytes if signature_bytes in _RSA_BYTES else _RSA_BYTES[0])


@cache
def _stand_in_on_a_curve(algorithm: str) -> PublicKey:
    if algorithm == "ES256":
        return ec.generate_private_key(ec.SECP256R1()).public_key()
    return Ed25519PrivateKey.generate().public_key()


@cache
def _rsa_stand_in(size: int) -> PublicKey:
    # The largest number of this size: no signature is refused before the exponentiation.
    return RSAPublicNumbers(65537, (1 << 8 * size) - 1).public_key()
