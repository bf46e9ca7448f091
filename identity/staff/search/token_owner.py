"""Whose a pasted token is: its client ID, once its signature is verified. It is not stored."""

import re
from datetime import UTC, datetime

import jwt

from tokens.access_tokens.verification import InvalidToken, verify
from tokens.keys.signer import current_key_ring
from tokens.login_settings import login_settings

_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


def client_id_in(text: str, at: datetime) -> str:
    """Also of a token that has expired; empty: there is none of ours in the text."""
    token = _TOKEN.search(text)
    if token is None:
        return ""
    try:
        claims = jwt.decode(token[0], options={"verify_signature": False})
        issued_at = min(at, datetime.fromtimestamp(claims["iat"], UTC))
        audiences = {*login_settings().audiences.values()}
        ring, issuer = current_key_ring(at), login_settings().issuer
        return verify(token[0], ring, issuer=issuer, audiences=audiences, at=issued_at).client_id
    except (InvalidToken, jwt.InvalidTokenError, LookupError, TypeError, ValueError, OverflowError):
        return ""
