"""What is asked of a server, and what every answer must be."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from bench.clients import Population, Role, client_id, client_secret, tin
from bench.load import Expected
from bench.peers import toolkit_registry

TOKEN = Expected(200, b'"access_token"')

Request = Callable[[random.Random], bytes]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table: how a request is made, and its right answer."""

    name: str
    request: Request
    expected: Expected = TOKEN
    is_same: bool = False  # every request is as good as the first
    issues_token: bool = False  # a signed one of ours: worth a closer look

    def requests(self, count: int, seed: int) -> list[bytes]:
        """So many requests; another seed, other clients."""
        chance = random.Random(seed)  # noqa: S311 - whose turn it is, is no secret
        return [self.request(chance) for _ in range(min(count, 100) if self.is_same else count)]


def _post(form: dict[str, str], chance: random.Random, *headers: str) -> bytes:
    body = urlencode({"grant_type": "client_credentials", **form})
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


def _credentials(role: Role, number: int) -> dict[str, str]:
    return {"client_id": client_id(role, number), "client_secret": client_secret(role, number)}


def taxpayer_login(population: Population) -> Scenario:
    """A random client at each request: in life each comes once an hour, and no cache is warm."""

    def request(chance: random.Random) -> bytes:
        number = chance.randrange(population.taxpayers)
        return _post(_credentials(Role.TAXPAYER, number), chance)

    return Scenario("taxpayer", request, issues_token=True)


def intermediary_login(population: Population) -> Scenario:
    """A random taxpayer, represented by its intermediary."""

    def request(chance: random.Random) -> bytes:
        number = chance.randrange(population.taxpayers)
        form = _credentials(Role.INTERMEDIARY, population.intermediary_of(number))
        return _post(form, chance, f"onbehalfof: {tin(Role.TAXPAYER, number)}")

    return Scenario("intermediary", request, issues_token=True)


def wrong_secret(population: Population) -> Scenario:
    """A random client with another client's secret, each from another address."""

    def request(chance: random.Random) -> bytes:
        number = chance.randrange(population.taxpayers)
        form = {
            "client_id": client_id(Role.TAXPAYER, number),
            "client_secret": client_secret(Role.BLOCKED, number),
        }
        return _post(form, chance)

    return Scenario("wrong secret", request, Expected(400, b'"invalid_client"'))


def blocked(population: Population) -> Scenario:
    """A random blocked system user with its right secret."""

    def request(chance: random.Random) -> bytes:
        number = chance.randrange(population.count(Role.BLOCKED))
        return _post(_credentials(Role.BLOCKED, number), chance)

    return Scenario("blocked", request, Expected(400, b'"unauthorised_client"'))


def hammering(population: Population) -> Scenario:
    """One client that asks without a pause, far past its limit of 12 a minute."""

    def request(chance: random.Random) -> bytes:
        return _post(_credentials(Role.LIMITED, 0), chance)

    return Scenario(
        "hammering", request, Expected(429, b'"invalid_request"', others=12), is_same=True
    )


def bare(population: Population) -> Scenario:
    """The same request, to which the bare view pays no attention."""
    return Scenario("bare", taxpayer_login(population).request, is_same=True)


def toolkit_login(applications: int) -> Scenario:
    """A random application of the toolkit's."""

    def request(chance: random.Random) -> bytes:
        number = chance.randrange(applications)
        form = {
            "client_id": toolkit_registry.client_id(number),
            "client_secret": toolkit_registry.SECRET,
        }
        return _post(form, chance)

    return Scenario("toolkit", request)
