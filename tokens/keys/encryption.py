"""Private keys at rest: encrypted with what the database does not know (contract 2).

Each of KEY_ENCRYPTION_KEYS becomes a Fernet key by HKDF-SHA256 (RFC 5869). The first encrypts, all
decrypt: put a new one in front, rotate the signing key, and drop the old one once no key that it
encrypted signs any more.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)
from django.conf import settings

from tokens.keys.ring import PrivateKey

_PURPOSE = b"signing keys at rest"


def encrypt(private_key: PrivateKey) -> bytes:
    """What is stored of a private key."""
    clear = private_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return _fernet(tuple(settings.KEY_ENCRYPTION_KEYS)).encrypt(clear)


def decrypt(stored: bytes) -> PrivateKey:
    """The private key. Raises cryptography.fernet.InvalidToken if none of the keys fits."""
    clear = _fernet(tuple(settings.KEY_ENCRYPTION_KEYS)).decrypt(stored)
    # It is authentic, and was valid when it was made: RSA's own checks would take milliseconds.
    private_key = load_der_private_key(clear, None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(private_key, PrivateKey)  # noqa: S101 - nothing else is ever encrypted
    return private_key


@lru_cache(maxsize=4)
def _fernet(secrets: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_derived(secret)) for secret in secrets])


def _derived(secret: str) -> bytes:
    # No salt: the secrets are long and random, and what is derived must be the same everywhere.
    key = HKDF(SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret.encode())
    return base64.urlsafe_b64encode(key)
