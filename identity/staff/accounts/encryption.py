"""Encrypts the secrets of second factors at rest, with a key that is not in the database.

The key is derived from SECRET_KEY by HKDF-SHA256 (RFC 5869), not from KEY_ENCRYPTION_KEYS: those
are removed after a rotation of the signing keys, and staff would be lock_for_update out.
"""

import base64

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

_PURPOSE = b"second factors at rest"


def encrypt(text: str) -> str:
    """The encrypted secret, as it is stored."""
    return _cipher().encrypt(text.encode()).decode()


def decrypt(stored: str) -> str:
    """The secret. Raises cryptography.fernet.InvalidToken if no key fits."""
    return _cipher().decrypt(stored.encode()).decode()


def _cipher() -> MultiFernet:
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derive_key(secret)) for secret in secrets])


def _derive_key(secret: str) -> bytes:
    key = HKDF(SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret.encode())
    return base64.urlsafe_b64encode(key)
