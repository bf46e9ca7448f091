"""A closer look at some of the tokens: signature, issuer, audience, lifetime (contract 2)."""

import json
from collections.abc import Iterable

import httpx
import jwt


class BadToken(Exception):
    """A token that a protected API would refuse."""


def verify(answers: Iterable[bytes], port: int) -> None:
    """Raises BadToken unless each answer holds a good token of the service on this port."""
    base = f"http://127.0.0.1:{port}/.well-known"
    keys = jwt.PyJWKSet.from_dict(httpx.get(f"{base}/jwks.json").json())
    issuer = httpx.get(f"{base}/oauth-authorization-server").json()["issuer"]
    for answer in answers:
        token = json.loads(answer.partition(b"\r\n\r\n")[2])["access_token"]
        try:
            key = keys[jwt.get_unverified_header(token)["kid"]]
            claims = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience="InvoicingAPI",
                issuer=issuer,
                leeway=60,
                options={"require": ["exp", "iat", "jti", "sub", "client_id"]},
            )
        except (jwt.InvalidTokenError, KeyError) as error:
            raise BadToken(f"{error!r}: {token}") from error
        if claims["exp"] - claims["iat"] != 3600:
            raise BadToken(f"not valid for an hour: {claims}")
