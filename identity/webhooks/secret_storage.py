"""The secrets of endpoints, encrypted at rest, and what they sign (Standard Webhooks 1.0.0)."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
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
    """Those that sign now, the newest first. Raises InvalidToken if one cannot be decrypted."""
    stored = [endpoint.secret]
    until = endpoint.former_secret_until
    if until is not None and at <= until:
        stored.append(endpoint.former_secret)
    return [fernet_for(_PURPOSE).decrypt(text.encode()).decode() for text in stored]


PREFIX = "whsec_"
_SECRET_BYTES = 32  # at least 24 and at most 64


def new_secret() -> str:
    """A random secret as receivers enter it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(
    message_id: str, seconds: int, body: bytes, secrets_in_force: Iterable[str]
) -> dict[str, str]:
    """The headers of one attempt at `seconds` since 1970; of the signatures one must be right."""
    content = f"{message_id}.{seconds}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(_signature(secret, content) for secret in secrets_in_force),
    }


def _signature(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
