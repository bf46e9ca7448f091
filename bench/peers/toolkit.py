"""django-oauth-toolkit on PostgreSQL, with Django's default password hasher and with a fast one."""

from dataclasses import dataclass

import psycopg

from bench.clients import Population
from bench.peers import Candidate
from bench.servers import Server, run_python
from bench.session import Session
from bench.token_requests import TOKEN, Random, token_request

_SECRET = "the-same-secret-for-all-applications-0123456789"
_MIGRATE_AND_HASH = (
    "import sys; from bench.peers.toolkit_app import migrate, make_password;"
    " migrate(); print(make_password(sys.argv[1]))"
)


@dataclass(frozen=True, slots=True)
class _Toolkit:
    """With a password hasher; "" is the default one."""

    name: str
    hasher: str = ""
    max_applications: int = 10**9

    def start(self, session: Session, population: Population) -> Server:
        count = self._count(population)

        def fill(url: str) -> None:
            hashed = run_python(
                "-c", _MIGRATE_AND_HASH, _SECRET, DATABASE_URL=url, HASHER=self.hasher
            )
            _register(url, count, hashed.strip())

        url = session.copy_of(
            session.template(f"{self.name}_applications_{count}", fill), self.name
        )
        application = "bench.peers.toolkit_app:application"
        return session.start_granian(self.name, application, DATABASE_URL=url, HASHER=self.hasher)

    def login(self, population: Population, number: int, chance: Random) -> bytes:
        application = number % self._count(population)
        return token_request(f"application-{application:010}", _SECRET, chance)

    def _count(self, population: Population) -> int:
        return min(population.taxpayers, self.max_applications)


def _register(url: str, count: int, hashed_secret: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO oauth2_provider_application (client_id, client_secret, client_type,"
            " authorization_grant_type, name, hash_client_secret, algorithm, skip_authorization,"
            " redirect_uris, post_logout_redirect_uris, allowed_origins, created, updated,"
            " registration_source)"
            " SELECT 'application-' || lpad(n::text, 10, '0'), %s, 'confidential',"
            " 'client-credentials', 'ERP ' || n, true, '', false, '', '', '', now(), now(), ''"
            " FROM generate_series(0, %s) AS n",
            [hashed_secret, count - 1],
        )
        connection.execute("VACUUM (FREEZE, ANALYZE)")


# A hash by the default hasher takes a quarter of a second: more applications change nothing.
_stock = _Toolkit("toolkit_stock", max_applications=1_000)
# MD5 is the fast hasher, which is enough for a random secret.
_fast = _Toolkit("toolkit_fast", "django.contrib.auth.hashers.MD5PasswordHasher")

STOCK = Candidate("django-oauth-toolkit, stock", _stock.start, _stock.login, TOKEN)
FAST_HASHER = Candidate(
    "django-oauth-toolkit, fast hasher", _fast.start, _fast.login, TOKEN, (16, 64)
)
