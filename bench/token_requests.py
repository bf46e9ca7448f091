"""What is asked of a server, and what every answer must be."""

import random
import time
from collections.abc import Callable
from urllib.parse import urlencode
from uuid import uuid4

import httpx
import jwt

from bench.clients import (
    API_ID,
    API_SECRET,
    Population,
    Role,
    client_id,
    client_secret,
    kid,
    private_key,
    tin,
)
from bench.load import Expected
from bench.servers import ISSUER, Server
from tokens.client_auth.assertion import JWT_BEARER

Random = random.Random

TOKEN = Expected(200, b'"access_token"')
SIGNED_TOKEN = Expected(200, b'"access_token"', is_signed=True)
WRONG_SECRET = Expected(400, b'"invalid_client"')
ACTIVE = Expected(200, b'"active": true')
ME = Expected(200, b'"subject":"C')
MALFORMED = Expected(400, b'"invalid_request"')
BLOCKED = Expected(400, b'"unauthorised_client"')
RATE_LIMITED = Expected(429, b'"invalid_request"', others=12)


_HEADERS = ("Host: 127.0.0.1", "User-Agent: ERP/1.0", "X-Forwarded-Proto: https")
_TOKENS = 2_000
# An assertion is made before its round begins, and may be 5 minutes ahead at most.
_ASSERTION_SECONDS = 240


class WithTokens:
    """Requests with tokens of clients that have logged in, one after the other."""

    def __init__(self, render: Callable[[str], bytes]) -> None:
        self._render = render
        self._requests: list[bytes] = []

    def prepare(self, server: Server, population: Population) -> None:
        """Logs in, so often that no token is used more often than its limit allows."""
        url, secure = f"http://127.0.0.1:{server.port}", {"X-Forwarded-Proto": "https"}
        form = {"grant_type": "client_credentials"}
        self._requests.clear()
        with httpx.Client(base_url=url, headers=secure) as client:
            for number in population.met(Role.TAXPAYER)[:_TOKENS]:
                who = {"client_id": client_id(number), "client_secret": client_secret(number)}
                answer = client.post("/connect/token", data=form | who).raise_for_status()
                self._requests.append(self._render(answer.json()["access_token"]))

    def __call__(self, population: Population, number: int, chance: Random) -> bytes:
        return self._requests[number % len(self._requests)]


def introspection(token: str) -> bytes:
    """Asked by the protected API."""
    sent = {"client_id": API_ID, "client_secret": API_SECRET, "token": token}
    return _post("/connect/introspect", urlencode(sent))


def me(token: str) -> bytes:
    """Which taxpayer the token represents."""
    lines = ("GET /api/v1/me HTTP/1.1", *_HEADERS, f"Authorization: Bearer {token}", "\r\n")
    return "\r\n".join(lines).encode()


def token_request(client: str, secret: str, chance: Random, *headers: str) -> bytes:
    """The bytes of a request with a secret."""
    return _request({"client_id": client, "client_secret": secret}, chance, *headers)


def _request(credentials: dict[str, str], chance: Random, *headers: str) -> bytes:
    """The bytes of a request, as from a proxy that ends TLS, with another address each time."""
    body = urlencode({"grant_type": "client_credentials", **credentials})
    address = ".".join(str(chance.randrange(1, 255)) for _ in range(4))
    return _post("/connect/token", body, f"X-Forwarded-For: {address}", *headers)


def _post(path: str, body: str, *headers: str) -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        *_HEADERS,
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(body)}",
        *headers,
    )
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def taxpayer_login(population: Population, number: int, chance: Random) -> bytes:
    """Login of this client for its own taxpayer."""
    return token_request(client_id(number), client_secret(number), chance)


def intermediary_login(population: Population, number: int, chance: Random) -> bytes:
    """The taxpayer with this number, represented by its intermediary."""
    intermediary = population.intermediary_of(number)
    header = f"onbehalfof: {tin(number)}"
    return token_request(client_id(intermediary), client_secret(intermediary), chance, header)


def key_login(population: Population, number: int, chance: Random) -> bytes:
    """Login of a client with its private key (ES256), for its own taxpayer."""
    client, now = client_id(number), int(time.time())
    claims = {"iss": client, "sub": client, "aud": ISSUER, "jti": str(uuid4())}
    assertion = jwt.encode(
        claims | {"iat": now, "exp": now + _ASSERTION_SECONDS},
        private_key(number),
        algorithm="ES256",
        headers={"kid": kid(number)},
    )
    return _request({"client_assertion_type": JWT_BEARER, "client_assertion": assertion}, chance)


def wrong_secret(population: Population, number: int, chance: Random) -> bytes:
    """With a well-formed secret of no client."""
    return token_request(client_id(number), client_secret(-number), chance)


def without_secret(population: Population, number: int, chance: Random) -> bytes:
    """Malformed: a parameter is missing."""
    return token_request(client_id(number), "", chance)


def rate_limited(population: Population, number: int, chance: Random) -> bytes:
    """Always the same client, far past its limit of 12 logins a minute."""
    return taxpayer_login(population, population.numbers(Role.RATE_LIMITED)[0], chance)
