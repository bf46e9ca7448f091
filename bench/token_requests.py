"""What is asked of a server, by a random client each time, and what every answer must be."""

import random
from urllib.parse import urlencode

from bench.clients import Population, Role, client_id, client_secret, tin
from bench.load import Expected

Random = random.Random

TOKEN = Expected(200, b'"access_token"')
SIGNED_TOKEN = Expected(200, b'"access_token"', is_signed=True)
WRONG_SECRET = Expected(400, b'"invalid_client"')
BLOCKED = Expected(400, b'"unauthorised_client"')
RATE_LIMITED = Expected(429, b'"invalid_request"', others=12)


def token_request(client: str, secret: str, chance: Random, *headers: str) -> bytes:
    """The bytes of a request, as from a proxy that ends TLS, with another address each time."""
    body = urlencode(
        {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
    )
    address = ".".join(str(chance.randrange(1, 255)) for _ in range(4))
    lines = (
        "POST /connect/token HTTP/1.1",
        "Host: 127.0.0.1",
        "User-Agent: ERP/1.0",
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(body)}",
        f"X-Forwarded-For: {address}",
        "X-Forwarded-Proto: https",
        *headers,
    )
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def taxpayer_login(population: Population, chance: Random) -> bytes:
    """In life each client logs in once an hour: no cache knows it."""
    return _login(chance.choice(population.numbers(Role.TAXPAYER)), chance)


def intermediary_login(population: Population, chance: Random) -> bytes:
    """A random taxpayer, represented by its intermediary."""
    taxpayer = chance.choice(population.numbers(Role.TAXPAYER))
    intermediary = population.intermediary_of(taxpayer)
    return _login(intermediary, chance, f"onbehalfof: {tin(taxpayer)}")


def wrong_secret(population: Population, chance: Random) -> bytes:
    """With a well-formed secret that nobody has."""
    number = chance.choice(population.numbers(Role.TAXPAYER))
    return token_request(client_id(number), client_secret(-number), chance)


def blocked(population: Population, chance: Random) -> bytes:
    """A blocked system user with its right secret."""
    return _login(chance.choice(population.numbers(Role.BLOCKED)), chance)


def rate_limited(population: Population, chance: Random) -> bytes:
    """Always the same client, far past its limit of 12 logins a minute."""
    return _login(population.numbers(Role.RATE_LIMITED)[0], chance)


def _login(number: int, chance: Random, *headers: str) -> bytes:
    return token_request(client_id(number), client_secret(number), chance, *headers)
