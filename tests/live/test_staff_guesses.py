"""Guessed passwords on the wire: over all processes, and by the address that a proxy reports."""

import itertools

import httpx

from tests.conftest import StartService
from tests.servers.service import Service
from tests.support.over_http import SIGN_IN, new_boss, send_form, sign_in

PROXY, DIRECT = "127.0.0.2", "127.0.0.1"
OFFICE, ELSEWHERE = "198.51.100.7", "203.0.113.9"


def browser(node: Service, hop: str, forwarded_for: str) -> httpx.Client:
    """A new browser and a new connection, so that any process may answer."""
    return httpx.Client(
        base_url=node.url,
        transport=httpx.HTTPTransport(local_address=hop),
        headers={"X-Forwarded-For": forwarded_for},
        timeout=30,
    )


def guess(node: Service, hop: str, forwarded_for: str) -> bool:
    """Whether the password was checked, and not refused unseen."""
    with browser(node, hop, forwarded_for) as client:
        page = send_form(client, SIGN_IN, node.url, login="boss", password="wrong").text
    assert ("is wrong" in page) is not ("Too many failed attempts" in page), page
    return "is wrong" in page


def test_who_guesses_is_stopped_by_every_process_and_stops_nobody_else(
    service: StartService,
) -> None:
    node = service(TRUSTED_PROXIES=PROXY, WEB_PROCESSES="2")
    boss = new_boss(node)
    # Behind the proxy the address is the last one, whatever the client wrote before it.
    made_up = (f"192.0.2.{number}" for number in itertools.count())
    through = [guess(node, PROXY, f"{next(made_up)}, {ELSEWHERE}") for _ in range(7)]
    assert through == [True] * 5 + [False] * 2
    # Without a trusted proxy the header is not believed at all.
    assert [guess(node, DIRECT, next(made_up)) for _ in range(7)] == [True] * 5 + [False] * 2
    with browser(node, PROXY, OFFICE) as officer:
        assert sign_in(officer, node.url, boss).status_code == 302
        assert officer.get("/admin/").status_code == 200
