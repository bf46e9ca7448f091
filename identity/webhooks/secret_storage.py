"""The secrets of endpoints at rest: encrypted with KEY_ENCRYPTION_KEYS, as signing keys are."""

from datetime import datetime

from identity.webhooks.models import WebhookEndpoint
from tokens.keys.encryption import fernet_for

_PURPOSE = b"secrets of webhooks at rest"


def encrypt(secret: str) -> str:
    """The secret as it is stored."""
    return fernet_for(_PURPOSE).encrypt(secret.encode()).decode()


def encrypt_anew(stored: str) -> str:
    """The same secret, encrypted with the newest key; empty stays empty."""
    return fernet_for(_PURPOSE).rotate(stored.encode()).decode() if stored else ""


def secrets_in_force(endpoint: WebhookEndpoint, at: datetime) -> list[str]:
    """The secrets that sign a message now, the newest first.

    Raises cryptography.fernet.InvalidToken if none of the keys has encrypted one of them.
    """
    stored = [endpoint.secret]
    until = endpoint.former_secret_until
    if until is not None and at <= until:
        stored.append(endpoint.former_secret)
    return [fernet_for(_PURPOSE).decrypt(text.encode()).decode() for text in stored]
