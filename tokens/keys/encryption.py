"""Private keys and other secrets at rest, encrypted by KEY_ENCRYPTION_KEYS (contract 2).

Each of these becomes a Fernet key by HKDF-SHA256 (RFC 5869). The first one encrypts, all of them
decrypt. To replace one: put the new one in front, rotate the signing key, and remove the old one
when no key that it encrypted signs any more.
"""

import base64
from functools import lru_cache
from typing import cast

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
    """The private key as it is stored."""
    plaintext = private_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return fernet_for(_PURPOSE).encrypt(plaintext)


def decrypt(stored: bytes) -> PrivateKey:
    """The stored private key. Raises cryptography.fernet.InvalidToken if no secret decrypts it."""
    plaintext = fernet_for(_PURPOSE).decrypt(stored)
    # It is authentic, and was valid when it was made: RSA's own checks would take milliseconds.
    private_key = load_der_private_key(plaintext, None, unsafe_skip_rsa_key_validation=True)
    return cast("PrivateKey", private_key)  # only `encrypt` makes what decrypts


def fernet_for(purpose: bytes) -> MultiFernet:
    """Encrypts with the newest key and decrypts with all; what is for one purpose is for no other.

    Its `rotate` encrypts anew, with the newest key, what an older one has encrypted.
    """
    return _fernet(tuple(settings.KEY_ENCRYPTION_KEYS), purpose)


@lru_cache(maxsize=8)
def _fernet(secrets: tuple[str, ...], purpose: bytes) -> MultiFernet:
    # No salt: the secrets are long and random, and every node must derive the same keys.
    keys = [
        HKDF(SHA256(), length=32, salt=None, info=purpose).derive(secret.encode())
        for secret in secrets
    ]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])
