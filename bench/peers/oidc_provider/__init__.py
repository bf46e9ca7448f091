"""Node's oidc-provider on PostgreSQL, with stored opaque tokens and with signed ones."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench import servers
from bench.clients import Population
from bench.peers import Candidate, Missing
from bench.servers import VAR, WORKERS, Server, free_port
from bench.session import Session
from bench.token_requests import TOKEN, Random, token_request

_SOURCE, _FOLDER = Path(__file__).parent, VAR / "oidc_provider"
_FILES = ("package.json", "package-lock.json", "server.js")
_SECRET = "the-same-secret-for-all-clients-0123456789-0123456789"
_TABLES = """
CREATE TABLE clients (id text PRIMARY KEY, payload json NOT NULL);
CREATE TABLE tokens (id text PRIMARY KEY, payload json NOT NULL, expires_at timestamptz NOT NULL);
"""
_FILL = """
INSERT INTO clients SELECT id, json_build_object(
    'client_id', id, 'client_secret', %s::text, 'token_endpoint_auth_method', 'client_secret_post',
    'grant_types', array['client_credentials'], 'response_types', array[]::text[],
    'redirect_uris', array[]::text[])
FROM (SELECT 'client-' || lpad(n::text, 10, '0') AS id FROM generate_series(1, %s) AS n) AS ids
"""


@dataclass(frozen=True, slots=True)
class _OidcProvider:
    """With access tokens of this kind: "stored" or "signed"."""

    tokens: str

    def start(self, session: Session, population: Population) -> Server:
        install()
        count, name = population.taxpayers, f"oidc_provider_{self.tokens}"

        def fill(url: str) -> None:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(_TABLES)
                connection.execute(_FILL, [_SECRET, count])
                connection.execute("VACUUM (FREEZE, ANALYZE)")

        url = session.copy_of(session.template(f"oidc_clients_{count}", fill), name)
        port = free_port()
        node = next(_FOLDER.glob("node_modules/node-linux-*/bin/node"), "node")
        server = servers.start(
            [str(node), "server.js"],
            port,
            session.folder / f"{name}.log",
            environment={
                "NODE_ENV": "production",
                "PORT": str(port),
                "WORKERS": str(WORKERS),
                "DATABASE_URL": url,
                "ISSUER": "https://127.0.0.1",
                "TOKENS": self.tokens,
            },
            database=session.database_server,
            cwd=_FOLDER,
        )
        return session.add(server)


def install() -> None:
    """Puts the program and its locked packages, also a Node that it supports, into `.bench/`.

    Raises Missing without npm, which may run on an older Node.
    """
    if not (shutil.which("node") and shutil.which("npm")):
        raise Missing("node or npm is missing")
    if all(_is_same(_SOURCE / name, _FOLDER / name) for name in _FILES):
        return
    _FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_SOURCE / name, _FOLDER / name)
    try:
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=_FOLDER, check=True)
    except subprocess.CalledProcessError as error:
        raise Missing("npm ci failed") from error
    shutil.copy(_SOURCE / "server.js", _FOLDER / "server.js")  # last: all is installed


def _is_same(one: Path, other: Path) -> bool:
    return other.exists() and one.read_bytes() == other.read_bytes()


def login(population: Population, number: int, chance: Random) -> bytes:
    """Another id for each number, the same secret."""
    return token_request(f"client-{number:010}", _SECRET, chance)


_stored, _signed = _OidcProvider("stored"), _OidcProvider("signed")
STORED = Candidate("oidc-provider, stored tokens", _stored.start, login, TOKEN, (16, 64))
SIGNED = Candidate("oidc-provider, JWT not stored", _signed.start, login, TOKEN, (16, 64))
