"""A database that falls silent with its connections open: its host vanished, or is replaced."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from django.db import OperationalError, connection

from taxpayers.shut_down import answered_within
from tests.conftest import StartService
from tests.introspection.api import INTROSPECT, REVOKE
from tests.introspection.party import Party, credentials
from tests.servers.processes import slowness, stopping
from tests.servers.service import Service
from tests.servers.tcp_proxy import TcpProxy
from tests.support.command_line import other_database

pytestmark = [pytest.mark.processes, pytest.mark.gate]

ANSWER_SECONDS = 2.0
REQUESTS = 12  # over both processes of a node


@pytest.fixture
def door(postgres_url: str) -> Iterator[TcpProxy]:
    proxy = TcpProxy(urlsplit(postgres_url).port or 0)
    with stopping(proxy):
        yield proxy


@pytest.fixture
def url(postgres_url: str, door: TcpProxy) -> str:
    return f"postgresql://postgres@127.0.0.1:{door.port}{urlsplit(postgres_url).path}"


def seconds_until_it_fails(statement: Callable[[], object]) -> float:
    began = time.monotonic()
    with pytest.raises(OperationalError):
        statement()
    return time.monotonic() - began


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def test_what_waits_longer_than_it_may_fails_and_the_next_connection_works(
    door: TcpProxy, url: str, tmp_path: Path
) -> None:
    with other_database(url, tmp_path):
        execute("SELECT 1")
        door.strand()
        with answered_within(0.5):
            assert 0.4 < seconds_until_it_fails(lambda: execute("SELECT 1")) < 2 + slowness()
        connection.close()
        with answered_within(10):
            execute("SELECT 1")


def statuses(node: Service, path: str) -> set[int]:
    return {httpx.get(f"{node.url}{path}", timeout=20).status_code for _ in range(REQUESTS)}


def keys_of(node: Service) -> set[int]:
    """How many keys each process publishes."""
    url = f"{node.url}/.well-known/jwks.json"
    return {len(httpx.get(url, timeout=20).json()["keys"]) for _ in range(REQUESTS)}


def test_a_database_that_falls_silent_is_a_503_in_time_and_its_successor_is_found(
    service: StartService, door: TcpProxy, url: str
) -> None:
    node = service(url, WEB_PROCESSES="2")
    party = Party(node)
    tokens = [party.token(), party.token()]
    assert party.introspect(tokens[0])["active"] is True
    assert keys_of(node) == {1}
    door.strand()
    began = time.monotonic()

    def status_and_seconds(number: int) -> tuple[int, float]:
        path, who = ((INTROSPECT, party.api), (REVOKE, party.erp))[number % 2]
        began = time.monotonic()
        answer = client.post(path, data={**credentials(who), "token": tokens[number % 2]})
        return answer.status_code, time.monotonic() - began

    with httpx.Client(base_url=node.url, timeout=10) as client, ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(status_and_seconds, range(24)))
    assert {status for status, _ in answers} <= {200, 503}
    assert 503 in {status for status, _ in answers}
    assert max(seconds for _, seconds in answers) < ANSWER_SECONDS + slowness()
    while statuses(node, "/health/ready") != {200}:
        assert time.monotonic() - began < 15 * slowness()
    node.manage("rotate_signing_key")
    while keys_of(node) != {2}:
        assert time.monotonic() - began < 40 * slowness()
        time.sleep(0.5)
