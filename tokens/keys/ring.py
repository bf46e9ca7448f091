"""Signing keys and the ring of those in use, as plain values (contract 2, RFC 7517). Pure.

A key is published before it signs, and stays published until the last token that it signed has
expired. A key that was compromised neither signs nor is published, whatever its dates are. This
module does not know where keys are stored.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_ec
from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateKey,
    generate_private_key as generate_rsa,
)

from taxpayers.client_keys import public_members, thumbprint
from tokens.lifetime import TOKEN_LIFETIME

PrivateKey = ec.EllipticCurvePrivateKey | RSAPrivateKey

# A new key is published this long before it signs: cached copies of the JWKS live for five minutes.
PUBLISHED_AHEAD = timedelta(minutes=10)
# For clocks that differ, and for a worker that could not reach the database for a while.
LEEWAY = timedelta(minutes=5)


class NoUsableKey(LookupError):
    """KEY_ENCRYPTION_KEYS decrypts none of the private keys."""


_new_rsa = partial(generate_rsa, public_exponent=65537, key_size=2048)
_GENERATORS: dict[str, Callable[[], PrivateKey]] = {
    "ES256": partial(generate_ec, ec.SECP256R1()),
    "RS256": _new_rsa,
    "PS256": _new_rsa,
}
ALGORITHMS = tuple(_GENERATORS)


@dataclass(frozen=True, slots=True)
class Key:
    """A published key. Without its private part it verifies but cannot sign."""

    kid: str
    alg: str
    signs_from: datetime
    public_jwk: dict[str, str]
    private_key: PrivateKey | None = field(default=None, repr=False, compare=False)
    is_compromised: bool = False

    @property
    def can_sign(self) -> bool:
        return self.private_key is not None and not self.is_compromised


@dataclass(frozen=True, slots=True)
class KeyRing:
    """All keys of the service, the oldest first."""

    keys: tuple[Key, ...]

    def signer(self, at: datetime) -> Key:
        """The key that signs at this moment: the newest whose `signs_from` has passed.

        If that one cannot sign, the next newer one does, before its time: one made because another
        was compromised or cannot be decrypted, on a node whose clock is slow. An older key signs
        only if there is no newer one. Raises NoUsableKey.
        """
        if self.keys and self.keys[-1].signs_from <= at and self.keys[-1].can_sign:
            return self.keys[-1]  # most often
        usable = [key for key in self.keys if key.can_sign]
        if not usable:
            raise NoUsableKey("No signing key can be decrypted; see KEY_ENCRYPTION_KEYS.")
        newest = max((n for n, key in enumerate(self.keys) if key.signs_from <= at), default=0)
        return next((key for key in self.keys[newest:] if key.can_sign), usable[-1])

    def waiting(self, at: datetime) -> Key | None:
        """The newest key, if it is published but does not sign yet; otherwise None."""
        return next((key for key in self.keys[-1:] if key.signs_from > at), None)

    def published(self, at: datetime) -> tuple[Key, ...]:
        """Those that sign, wait, or have signed tokens that may be valid; no compromised one."""
        # A compromised key still says when the key before it stopped signing.
        successors = (*self.keys, None)[1:]
        return tuple(
            key
            for key, successor in zip(self.keys, successors, strict=True)
            if not key.is_compromised
            and (successor is None or at < successor.signs_from + TOKEN_LIFETIME + LEEWAY)
        )

    def find(self, kid: str) -> Key | None:
        return next((key for key in self.keys if key.kid == kid), None)


def generate(alg: str) -> PrivateKey:
    """A new private key for this algorithm. Raises KeyError for one that is not in ALGORITHMS."""
    return _GENERATORS[alg]()


def public_jwk(private_key: PrivateKey, alg: str) -> dict[str, str]:
    """The public part as a JWK (RFC 7517); its `kid` is its thumbprint."""
    members = public_members(private_key.public_key())
    return {**members, "use": "sig", "alg": alg, "kid": thumbprint(members)}
