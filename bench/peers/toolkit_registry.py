"""Fills the toolkit's database with its applications."""

import subprocess
import sys

import psycopg

from tests.support.servers import CHECKOUT, TEST_SECRETS, clean_environment

# MD5 is as good as any here: it stands for "fast", and the secret is a random one.
FAST_HASHER = "django.contrib.auth.hashers.MD5PasswordHasher"
SECRET = "the-same-secret-for-all-applications-0123456789"
_HASH = "from django.contrib.auth.hashers import make_password; import sys, django;" + (
    "django.setup(); print(make_password(sys.argv[1]))"
)


def client_id(number: int) -> str:
    """The client id of the application with this number."""
    return f"application-{number:010}"


def environment(url: str, hasher: str) -> dict[str, str]:
    """What the peer's processes need; an empty `hasher` is Django's default."""
    return {
        "DJANGO_SETTINGS_MODULE": "bench.peers.toolkit_settings",
        "DATABASE_URL": url,
        "TOOLKIT_HASHER": hasher,
    }


def fill(url: str, applications: int, hasher: str) -> None:
    """Migrates the empty database at `url` and registers so many applications in it."""
    given = environment(url, hasher)
    _run(given, "-m", "django", "migrate", "--verbosity=0")
    hashed = _run(given, "-c", _HASH, SECRET).strip()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO oauth2_provider_application (client_id, client_secret, client_type,"
            " authorization_grant_type, name, hash_client_secret, algorithm, skip_authorization,"
            " redirect_uris, post_logout_redirect_uris, allowed_origins, created, updated,"
            " registration_source)"
            " SELECT 'application-' || lpad(n::text, 10, '0'), %s, 'confidential',"
            " 'client-credentials', 'ERP ' || n, true, '', false, '', '', '', now(), now(), ''"
            " FROM generate_series(0, %s) AS n",
            [hashed, applications - 1],
        )
        connection.execute("VACUUM (FREEZE, ANALYZE)")


def _run(given: dict[str, str], *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=CHECKOUT,
        env={**clean_environment(), **TEST_SECRETS, **given},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
