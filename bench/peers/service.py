"""This service as in production: only the login, behind a proxy that ends TLS (README)."""

import shutil
from collections.abc import Callable

from bench import servers
from bench.clients import Population, Role
from bench.peers import Candidate
from bench.servers import CHECKOUT, PROGRAMS, WORKERS, Server, is_answering
from bench.session import Session
from bench.token_requests import (
    ACTIVE,
    BLOCKED,
    MALFORMED,
    ME,
    RATE_LIMITED,
    SIGNED_TOKEN,
    WRONG_SECRET,
    WithTokens,
    intermediary_login,
    introspection,
    key_login,
    me,
    rate_limited,
    taxpayer_login,
    without_secret,
    wrong_secret,
)


def is_ready(port: int) -> bool:
    """Whether it can answer logins."""
    return is_answering(port, "/health/ready", status=200)


def start_on(
    session: Session,
    name: str,
    database_url: str,
    is_ready: Callable[[int], bool] = is_ready,
    **settings: str,
) -> Server:
    """The service on this database, with its configuration for production."""
    port, folder = servers.free_port(), session.folder / name
    # A node that remembers clients of another copy of this database logs each of them in twice.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    environment = {
        "PORT": str(port),
        "VAR_DIR": str(folder),
        "DATABASE_URL": database_url,
        "TRUSTED_PROXIES": "127.0.0.1",
        "SERVE": "login",
        "WEB_PROCESSES": str(WORKERS),
        **settings,
    }
    server = servers.start(
        [str(PROGRAMS / "gunicorn"), "--config", str(CHECKOUT / "deploy" / "gunicorn.conf.py")],
        port,
        folder / "log",
        is_ready,
        environment=environment,
        database=None if database_url.startswith("sqlite") else session.database_server,
        cwd=CHECKOUT,
    )
    return session.add(server)


def _start(session: Session, population: Population) -> Server:
    return start_on(session, "service", session.copy_of_registry(population, "service"))


def _start_rs256(session: Session, population: Population) -> Server:
    url = session.copy_of_registry(population, "rs256")
    return start_on(session, "rs256", url, SIGNING_ALGORITHM="RS256")


def _start_sqlite(session: Session, population: Population) -> Server:
    return start_on(session, "sqlite", session.sqlite_registry(population))


LOGIN = Candidate(
    *("login as taxpayer", _start, taxpayer_login, SIGNED_TOKEN, (16, 64)), meets_clients=True
)
FIRST_LOGIN = Candidate(
    "first login of a client", _start, taxpayer_login, SIGNED_TOKEN, is_first_login=True
)
INTERMEDIARY = Candidate(
    "login as intermediary", _start, intermediary_login, SIGNED_TOKEN, meets_clients=True
)
PRIVATE_KEY = Candidate(
    *("login with private_key_jwt (ES256)", _start, key_login, SIGNED_TOKEN),
    role=Role.PRIVATE_KEY,
    meets_clients=True,
)
WRONG = Candidate("refused: wrong secret", _start, wrong_secret, WRONG_SECRET)
BLOCKED_USER = Candidate(
    *("refused: blocked", _start, taxpayer_login, BLOCKED), role=Role.BLOCKED, meets_clients=True
)
INCOMPLETE = Candidate("refused: malformed", _start, without_secret, MALFORMED)
HAMMERING = Candidate("refused: rate limit", _start, rate_limited, RATE_LIMITED)
RS256 = Candidate(
    *("login as taxpayer, RS256", _start_rs256, taxpayer_login, SIGNED_TOKEN), meets_clients=True
)
# There the database itself is local: a node remembers nothing beside it. But what is measured is
# not the first login of a client, which takes an index in the status lists.
SQLITE = Candidate(
    *("login as taxpayer, SQLite", _start_sqlite, taxpayer_login, SIGNED_TOKEN), meets_clients=True
)
_about_token, _of_token = WithTokens(introspection), WithTokens(me)
INTROSPECTION = Candidate(
    *("introspection", _start, _about_token, ACTIVE), prepare=_about_token.prepare
)
OWN_TOKEN = Candidate("GET /api/v1/me", _start, _of_token, ME, prepare=_of_token.prepare)
REFUSALS = (WRONG, BLOCKED_USER, INCOMPLETE)
OTHERS: tuple[Candidate, ...] = (FIRST_LOGIN, INTERMEDIARY, PRIVATE_KEY, *REFUSALS, HAMMERING)
OTHERS += (INTROSPECTION, OWN_TOKEN, RS256, SQLITE)
