"""Secrets and signatures of the Standard Webhooks specification, version 1.0.0. Pure."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

PREFIX = "whsec_"
_SECRET_BYTES = 32  # at least 24 and at most 64


def new_secret() -> str:
    """A random secret as receivers enter it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(
    message_id: str, seconds: int, body: bytes, secrets_in_force: Iterable[str]
) -> dict[str, str]:
    """The three headers of one attempt at `seconds` since 1970, with a signature by each secret.

    A receiver accepts the message if one of the signatures is right, so that a secret can be
    replaced without a pause.
    """
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
