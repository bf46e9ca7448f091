"""`asking`: whether who asks for a permission or a connection learns if a taxpayer exists."""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random
from statistics import median
from typing import Any
from uuid import uuid4

import httpx
import jwt
import psycopg
from jwt.algorithms import ECAlgorithm

from bench.clients import Population, Role, client_id, client_secret, private_key, tin
from bench.peers import service
from bench.report import Table, progress
from bench.servers import ISSUER, Server
from bench.session import Session

_SCOPE = "PermissionRequestAPI"
_SCOPES = {
    name: {"description": name, "audience": audience}
    for name, audience in (("InvoicingAPI", "InvoicingAPI"), (_SCOPE, "IdentityAPI"))
}
_FIRST = 50  # answers take longer
_MOST_Z = 4.0  # by chance it is more in one of 16,000 runs
_CHANGING = ("id", "asked_at", "expires_at")  # in every answer
Ask = Callable[[str], httpx.Response]


def run(session: Session, asked: int = 5_000) -> list[Table]:
    """So many real and so many invented TINs are asked: bytes and times of the answers."""
    population = Population(asked)
    url = session.copy_of_registry(population, "asking")
    vendors = population.numbers(Role.INTERMEDIARY)
    with psycopg.connect(url, autocommit=True) as connection:
        change = "UPDATE system_users SET scopes = %s WHERE id = ANY(%s)"
        connection.execute(change, (_SCOPE, [*vendors]))
    server = service.start_on(session, "asking", url, SCOPES=json.dumps(_SCOPES))
    session.settle()
    lines, problems = [], []
    with _client(server) as client:
        asks = {
            "permission requests": _permissions(client, vendors),
            "connections": _connections(client),
        }
        for name, ask in asks.items():
            progress(name)
            seconds, answers = _measure(ask, asked)
            z = _rank_z(*seconds)
            figures = [f"{median(times) * 1000:.2f}" for times in seconds]
            lines.append((name, *figures, f"{z:.2f}", f"{len(answers)}"))
            if len(answers) > 1 or abs(z) > _MOST_Z:
                problems.append(f"{name}: real and invented TINs differ: z {z:.2f}, {answers}")
    headings = ("asked for", "real: median ms", "invented: median ms", "rank test z", "answers")
    note = f"{asked:,} real and {asked:,} invented TINs in random order, from one sender."
    return [Table("asking", headings, lines, note, "\n".join(problems))]


def _client(server: Server) -> httpx.Client:
    secure = {"X-Forwarded-Proto": "https"}
    return httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=secure)


def _permissions(client: httpx.Client, vendors: range) -> Ask:
    """By the token of one vendor after the other: each may ask so often only."""

    def token(number: int) -> str:
        who = {"client_id": client_id(number), "client_secret": client_secret(number)}
        answer = client.post("/connect/token", data={"grant_type": "client_credentials"} | who)
        text: str = answer.raise_for_status().json()["access_token"]
        return text

    tokens = cycle([token(number) for number in vendors])

    def ask(taxpayer: str) -> httpx.Response:
        body = {"taxpayer": taxpayer, "permissions": ["documents:submit"]}
        headers = {"Authorization": f"Bearer {next(tokens)}"}
        return client.post("/api/v1/permission-requests", json=body, headers=headers)

    return ask


def _connections(client: httpx.Client) -> Ask:
    """With one key, from another address each time."""
    path, key, addresses = "/api/v1/connections", private_key(1), _addresses()
    jwk: Any = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)

    def ask(taxpayer: str) -> httpx.Response:
        claims = {"htm": "POST", "htu": f"{ISSUER}{path}", "iat": int(time.time())}
        header = {"typ": "dpop+jwt", "jwk": jwk}
        proof = jwt.encode(claims | {"jti": str(uuid4())}, key, "ES256", header)
        headers = {"DPoP": proof, "X-Forwarded-For": next(addresses)}
        return client.post(path, json={"taxpayer": taxpayer, "name": "ERP"}, headers=headers)

    return ask


def _addresses() -> Iterator[str]:
    return (f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(1, 1 << 24))


def _measure(ask: Ask, asked: int) -> tuple[tuple[list[float], list[float]], Counter[str]]:
    """The seconds of each answer, to real and to invented TINs; and which answers there were."""
    both = [(tin(n), 0) for n in range(1, asked + 1)] + [(f"C9{n:09}", 1) for n in range(asked)]
    Random(1).shuffle(both)  # noqa: S311 - an order
    seconds: tuple[list[float], list[float]] = ([], [])
    answers: Counter[str] = Counter()
    for number, (taxpayer, is_invented) in enumerate(both):
        began = time.perf_counter()
        answer = ask(taxpayer)
        if number >= _FIRST:
            seconds[is_invented].append(time.perf_counter() - began)
        answers[_masked(answer, taxpayer)] += 1
    return seconds, answers


def _masked(answer: httpx.Response, taxpayer: str) -> str:
    """Status, headers and body without what differs in each answer."""
    names = [name for name in answer.headers if name.lower() not in ("date", "correlationid")]
    text = "\n".join([f"{name}: {answer.headers[name]}" for name in names] + [answer.text])
    body = answer.json()
    for value in (taxpayer, *(str(body.get(name)) for name in _CHANGING)):
        text = text.replace(value, "*")
    return f"{answer.status_code} {text}"


def _rank_z(one: list[float], other: list[float]) -> float:
    """By how many standard deviations the ranks of the first differ (Mann-Whitney)."""
    ordered = sorted([(value, 0) for value in one] + [(value, 1) for value in other])
    ranks = sum(rank for rank, (_, of) in enumerate(ordered, 1) if of == 0)
    n, m = len(one), len(other)
    u = ranks - n * (n + 1) / 2
    return (u - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)
