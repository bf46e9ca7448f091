"""How fast the staff's pages are with a country's registry and a month of its logins.

`python -m bench.staff_pages --users 1000000 --events 20000000`
"""

import argparse
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import httpx
import psycopg

from bench import registry, staff_history
from bench.clients import Population, Role, client_id, tin
from bench.report import Table
from bench.servers import Target
from bench.stage import Stage, stage
from tests.support.servers import CHECKOUT, free_port, manage, service_environment

LIMIT_MS = 300.0
_FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "10.20.0.14"}
_KNOWN_LOGINS = 200


@dataclass(frozen=True, slots=True)
class Page:
    """A page by its name, and an address of it: mostly another one each time."""

    name: str
    path: Callable[[random.Random], str]


@dataclass(frozen=True, slots=True)
class Timing:
    name: str
    p50_ms: float
    p95_ms: float
    queries: int

    @property
    def is_fast(self) -> bool:
        return self.p95_ms <= LIMIT_MS


def pages(population: Population, logins: list[str]) -> list[Page]:
    """Every page of the staff's workplace whose cost could grow with the registry or the logins."""

    def number(chance: random.Random) -> int:
        return chance.randrange(population.taxpayers)

    def a_tin(chance: random.Random) -> str:
        return tin(Role.TAXPAYER, number(chance))

    def a_client(chance: random.Random) -> str:
        return client_id(Role.TAXPAYER, number(chance))

    def an_address(chance: random.Random) -> str:
        return f"10.0.{chance.randrange(256)}.{chance.randrange(1, 255)}"

    users, events = "/admin/taxpayers/systemuser/", "/admin/tokens/loginevent/"
    first = population.first_id(Role.TAXPAYER)
    searched: list[tuple[str, str, Callable[[random.Random], str]]] = [
        ("taxpayers by TIN", "/admin/taxpayers/taxpayer/", a_tin),
        ("taxpayers by name", "/admin/taxpayers/taxpayer/", lambda c: f"taxpayer {number(c)}"),
        ("permissions by TIN", "/admin/taxpayers/grantedpermission/", a_tin),
        ("system users by TIN", users, a_tin),
        ("system users by client ID", users, a_client),
        ("system users by name", users, lambda c: f"erp {number(c)}"),
        ("logins by reference", events, lambda c: c.choice(logins)),
        ("logins by client ID", events, a_client),
        ("logins by TIN", events, a_tin),
        ("logins by address", events, an_address),
    ]
    fixed = {
        "first page": "/admin/",
        "taxpayers": "/admin/taxpayers/taxpayer/",
        "taxpayers not active": "/admin/taxpayers/taxpayer/?is_active__exact=0",
        "intermediaries": "/admin/taxpayers/intermediary/",
        "permissions": "/admin/taxpayers/grantedpermission/",
        "permissions that end in 30 days": "/admin/taxpayers/grantedpermission/?state=30",
        "permissions in force": "/admin/taxpayers/grantedpermission/?state=in_force",
        "system users": users,
        "system users, page 20": f"{users}?p=20",
        "system users that are blocked": f"{users}?state=blocked",
        "system users that expired": f"{users}?state=expired",
        "system users that expire in 7 days": f"{users}?state=7",
        "system users with a secret that expires": f"{users}?secret=90",
        "logins": events,
        "logins of 30 days, refused": f"{events}?period=30&reason=refused",
        "logins of 24 hours, one reason": f"{events}?period=1&reason=invalid_scope",
        "history": "/admin/taxpayers/change/",
        "signing keys": "/admin/tokens/signingkey/",
    }
    return [
        *(Page(name, lambda _chance, path=path: path) for name, path in fixed.items()),  # type: ignore[misc]
        *(
            Page(name, lambda c, path=path, term=term: f"{path}?{urlencode({'q': term(c)})}")  # type: ignore[misc]
            for name, path, term in searched
        ),
        Page("page of a system user", lambda c: f"{users}{first + number(c)}/change/"),
        Page(
            "page of a taxpayer", lambda c: f"/admin/taxpayers/taxpayer/{first + number(c)}/change/"
        ),
        Page("why did this login fail", lambda c: f"{events}{c.choice(logins)}/change/"),
        Page(
            "before blocking a system user",
            lambda c: f"{users}{first + number(c)}/block_system_user/",
        ),
    ]


def measure(running: Stage, population: Population, events: int, requests: int) -> list[Timing]:
    """Each page asked for so many times, one after the other, of a service as in production."""
    template = f"staff_{population.taxpayers}_{events}_{time.strftime('%Y%m%d')}"
    name = running.databases.template(template, lambda url: _fill(url, population, events))
    url = running.databases.copy(name, "staff")
    with psycopg.connect(url) as connection:
        rows = (
            connection.execute(
                "SELECT id FROM login_events TABLESAMPLE SYSTEM (1) LIMIT %s", [_KNOWN_LOGINS]
            ).fetchall()
            or connection.execute(
                "SELECT id FROM login_events LIMIT %s", [_KNOWN_LOGINS]
            ).fetchall()
        )
    target = running.identity_on(url, "staff", SERVE="staff")
    chance = random.Random(1)  # noqa: S311 - whose turn it is, is no secret
    asked = pages(population, [str(row[0]) for row in rows])
    with tempfile.TemporaryDirectory() as var:
        environment = service_environment(Path(var), target.port, DATABASE_URL=url)
        manage(environment, "count_logins")
        cookie, queries = _signed_in(environment, [page.path(chance) for page in asked])
    return [
        _timed(page, target, cookie, counted, requests, chance)
        for page, counted in zip(asked, queries, strict=True)
    ]


def _fill(url: str, population: Population, events: int) -> None:
    with tempfile.TemporaryDirectory() as var:
        environment = service_environment(Path(var), free_port(), DATABASE_URL=url)
        manage(environment, "migrate", "--verbosity=0")
    registry.fill(url, population)
    staff_history.fill(url, events, population.taxpayers)


def _signed_in(environment: dict[str, str], paths: list[str]) -> tuple[str, list[int]]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.staff_queries"],
        cwd=CHECKOUT,
        env={
            **environment,
            "DJANGO_SETTINGS_MODULE": "identity.settings",
            "AUTH_URL": "https://127.0.0.1",
        },
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found = json.loads(done.stdout)
    return found["cookie"], [found["queries"][path] for path in paths]


def _timed(
    page: Page, target: Target, cookie: str, queries: int, requests: int, chance: random.Random
) -> Timing:
    seconds = []
    headers = {**_FORWARDED, "Cookie": cookie, "Host": "127.0.0.1"}
    with httpx.Client(base_url=f"http://127.0.0.1:{target.port}", headers=headers) as client:
        for _ in range(requests + 4):
            started = time.perf_counter()
            answer = client.get(page.path(chance), timeout=60)
            seconds.append(time.perf_counter() - started)
            if answer.status_code != 200:
                raise RuntimeError(f"{page.name}: {answer.status_code} {answer.headers}")
    # The first ones open each process's connection to the database.
    ordered = sorted(seconds[4:])
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return Timing(page.name, statistics.median(ordered) * 1000, p95 * 1000, queries)


def table(timings: list[Timing]) -> Table:
    """The pages as lines; a page that is too slow is marked."""
    return Table(
        ("page", "p50 ms", "p95 ms", "queries", ""),
        [
            (t.name, f"{t.p50_ms:.0f}", f"{t.p95_ms:.0f}", str(t.queries), "" if t.is_fast else "!")
            for t in timings
        ],
    )


def main() -> None:
    """Reads the command line, measures, prints; exits 1 if a page is too slow."""
    parser = argparse.ArgumentParser(prog="python -m bench.staff_pages", description=__doc__)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--requests", type=int, default=60, help="for each page")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with stage() as running:
        timings = measure(running, Population(given.users), given.events, given.requests)
    print(table(timings).as_text())
    print(f"{given.users:,} system users, {given.events:,} logins of {staff_history.DAYS} days")
    if not all(timing.is_fast for timing in timings):
        sys.exit(f"A page marked ! takes more than {LIMIT_MS:.0f} ms.")


if __name__ == "__main__":
    main()
