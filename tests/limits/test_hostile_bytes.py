"""What bytes cost that are made to be expensive: calls of functions are counted, not seconds.

`make bench ARGS="refusals"` measures the CPU time of these, and of many others, at every address.
"""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from a2wsgi.wsgi import build_environ
from pytest_django import Settings
from uvicorn.config import Config
from uvicorn.server import ServerState

from bench.hostile import Address, Hostile
from identity.asgi import application
from identity.server.connection import Connection
from identity.server.exchange import Exchange
from identity.server.overload import StartQueue
from identity.wsgi import application as pages
from tests.support.queries import calls_of
from tokens.answers.response import Ended
from tokens.calls import RejectedRequest
from tokens.operations import asgi
from tokens.operations.node import Node, this_node
from tokens.operations.paths import OPERATIONS
from tokens.operations.steps import advance
from tokens.rate_limits.throttle import DenialCache, Throttle, ThrottleCause
from tokens.request.arrival import receive

HERE = "192.0.2.1"
CONFIG = Config(application, lifespan="off", ws="none", log_config=None)
CHANCE = Random(1)  # noqa: S311 - addresses of callers are no secret
# Function calls beyond those of the same request without the bytes: each of these took thousands.
MORE_IF_THROTTLED, MORE_IF_REFUSED, MORE_OF_A_PAGE = 50, 2_000, 1_000
OF_OPERATIONS = [
    *(("User-Agent", "/1%41+"), ("client_id", "%2525"), ("client_id", "/1%41+")),
    *(("query", "%41"), ("Basic", "%41"), ("body", "%41"), ("body", "%c3%a9")),
    ("Content-Type", "a=1;"),
]
OF_PAGES = [
    *((path, "If-None-Match", '"a",') for path in ("/guide", "/openapi.json", "/sandbox")),
    ("/developers/style.css", "If-None-Match", '"a",'),
    *((path, "Content-Type", "a=1;") for path in ("/api/v1/me", "/guide", "/status/x")),
    *((path, "path", "%c3%a9") for path in ("/nothing", "/status", "/connect/token")),
    *((path, "Cookie", "a=1;") for path in ("/signin/login/", "/admin/")),
    ("/api/v1/permissions", "query", "%41"),
    ("/api/v1/permissions", "Accept", '"a",'),
    ("/signin/login/", "Accept-Language", '"a",'),
]


class Reader(Connection):
    offered: Exchange

    def offer(self, exchange: Exchange) -> None:
        self.offered = exchange


class Transport(asyncio.Transport):
    """To a client that reads nothing."""

    def write(self, data: Any) -> None:
        pass

    def pause_reading(self) -> None:
        pass


def read(received: bytes) -> tuple[dict[str, Any], bytes]:
    loop: Any = SimpleNamespace(time=lambda: 0.0)
    reader = Reader(StartQueue(loop, ()), CONFIG, ServerState(), {}, loop)
    reader.connection_made(Transport())
    reader.data_received(received)
    return dict(reader.offered.scope), bytes(reader.offered.body)


def steps_of(node: Node, hostile: Hostile) -> Any:
    """What a request yields first, or how it ends; it is read, answered and reported."""
    scope, body = read(hostile.request(CHANCE, HERE))
    meta = asgi._meta({**scope, "client": ("127.0.0.1", 1)})
    arrival, raw = receive(meta, body, node.clock.now())
    operation = OPERATIONS[scope["path"]]
    step = advance(operation.begin(node, arrival, raw))
    if isinstance(step, Ended):
        operation.report(arrival, step, 0.1)
    return step


def page_status(hostile: Hostile) -> int:
    """The status of a page, from the thread that asks: as the application, or a thread of it."""
    scope, body = read(hostile.request(CHANCE, HERE))
    scope |= {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
    statuses: list[int] = []

    async def send(message: Any) -> None:
        statuses.append(message["answer"].status)

    if hostile.place == "path":  # too long for any thread: it would wait for ever without one
        asyncio.run(application(scope, None, send))
    else:
        environ = cast("Any", build_environ)(scope, BytesIO(body))
        pages(environ, lambda line, *_: statuses.append(int(line[:3])))
    return statuses[0]


@pytest.fixture
def this(settings: Settings) -> Node:
    settings.TRUSTED_PROXIES = ["127.0.0.1"]
    settings.AUTH_URL = "https://identity.example.org"
    return replace(this_node(), denials=DenialCache())


@pytest.mark.parametrize(("place", "unit"), OF_OPERATIONS)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=() if p.endswith("token") else pytest.mark.long)
        for p in OPERATIONS
        if p.startswith("/connect/")
    ],
)
def test_a_refused_request_costs_little_whatever_its_bytes(
    this: Node, path: str, place: str, unit: str
) -> None:
    address = Address("POST", path, ())
    plain = calls_of(steps_of, this, Hostile(address))
    for length in (190, 28_000):
        cost = calls_of(steps_of, this, Hostile(address, place, unit, length))
        assert cost - plain < MORE_IF_REFUSED


@pytest.mark.parametrize(("place", "unit"), OF_OPERATIONS)
def test_a_throttled_request_costs_next_to_nothing_and_is_only_counted(
    this: Node, caplog: pytest.LogCaptureFixture, place: str, unit: str
) -> None:
    address = Address("POST", "/connect/token", ())
    hostile = Hostile(address, place, unit, 28_000)
    assert isinstance(steps_of(this, hostile), RejectedRequest)
    until = this.clock.now() + timedelta(minutes=1)
    this.denials.remember((ThrottleCause.REJECTIONS, HERE), Throttle(until))
    caplog.clear()
    caplog.set_level(logging.INFO)
    ended = steps_of(this, hostile)
    assert (ended.outcome, ended.answer.status) == ("rate_limited", 429)
    assert not caplog.records
    plain = calls_of(steps_of, this, Hostile(address))
    assert calls_of(steps_of, this, hostile) - plain < MORE_IF_THROTTLED


@pytest.mark.django_db
@pytest.mark.parametrize(("path", "place", "unit"), OF_PAGES)
def test_a_page_costs_what_it_costs_whatever_the_bytes(path: str, place: str, unit: str) -> None:
    address = Address("GET", path, ())
    status = page_status(Hostile(address))
    plain = calls_of(page_status, Hostile(address))
    hostile = Hostile(address, place, unit, 28_000)
    assert page_status(hostile) == (404 if place == "path" else status)
    assert calls_of(page_status, hostile) - plain < MORE_OF_A_PAGE
