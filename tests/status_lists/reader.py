"""A protected API that never asks this service about a token: it reads the published lists."""

import zlib
from base64 import urlsafe_b64decode
from typing import Any
from urllib.parse import urlsplit

import jwt
from django.conf import settings
from django.http import HttpResponse
from django.test import Client

from tests.introspection.api import claims_of
from tests.support.answers import body_of
from tokens.operations.node import this_node
from tokens.status_lists.publication import forget_status_lists

JWKS = "/.well-known/jwks.json"


def get(path: str, method: str = "GET", **headers: str) -> HttpResponse:
    return Client().generic(method, path, headers=headers)  # type: ignore[return-value]


def reference_of(token: str) -> tuple[str, int]:
    reference = claims_of(token)["status"]["status_list"]
    return reference["uri"], reference["idx"]


def read_list(uri: str, answer: HttpResponse | None = None) -> dict[str, Any]:
    """The claims of the list as it is now, with all that a reader must check."""
    if answer is None:
        forget_status_lists()  # this process may have read it just now
        answer = get(urlsplit(uri).path)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/statuslist+jwt")
    signed = answer.content.decode()
    header = jwt.get_unverified_header(signed)
    assert header["typ"] == "statuslist+jwt"
    key = jwt.PyJWKSet.from_dict(body_of(get(JWKS)))[header["kid"]]
    required: Any = {"require": ["sub", "iat", "exp", "ttl", "status_list"]}
    claims: dict[str, Any] = jwt.decode(signed, key, issuer=settings.AUTH_URL, options=required)
    assert claims["sub"] == uri
    return claims


def bits_of(claims: dict[str, Any]) -> bytes:
    lst = claims["status_list"]["lst"]
    return zlib.decompress(urlsafe_b64decode(lst + "=" * (-len(lst) % 4)))


def is_ended(token: str) -> bool:
    """Whether the bit of the token is set in a list that is fetched now."""
    uri, idx = reference_of(token)
    return bool(bits_of(read_list(uri))[idx // 8] >> idx % 8 & 1)


def use_up_the_reserve() -> None:
    """The next new token gets an index from the database."""
    while this_node().reserved_indexes.take():
        pass
