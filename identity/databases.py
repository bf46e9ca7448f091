"""The database of the service: PostgreSQL by its URL, or SQLite in `var/` (contract 6)."""

from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

# psycopg then prepares what asks for it, as taxpayers/sql.py does, and nothing by itself: once a
# column has another type, a prepared statement of the ORM would fail until the node restarts.
_ONLY_ON_REQUEST = 2**31 - 1


def database(url: str | None, var: Path) -> dict[str, Any]:
    """Its Django settings; without `url` an SQLite file in `var`. Raises ImproperlyConfigured."""
    if not url:
        return _sqlite(var / "identity.sqlite3")
    parts = _parts(url)
    if parts.scheme in ("postgres", "postgresql"):
        return _postgresql(parts)
    if parts.scheme == "sqlite":
        return _sqlite(Path(unquote(parts.path)))
    raise ImproperlyConfigured(
        f"The URL of a database must begin with postgresql:// or sqlite://, not {parts.scheme!r}."
    )


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises ValueError, as urlsplit itself does
    except ValueError:  # its message may hold a part of the password
        raise ImproperlyConfigured(
            "The URL of a database is malformed. In its user and password write special characters"
            " in percent-encoding: / as %2F, # as %23, [ as %5B, @ as %40."
        ) from None
    return parts


def _postgresql(parts: Any) -> dict[str, Any]:
    options = dict(parse_qsl(parts.query))
    pooling = options.pop("pooling", None)
    if pooling not in (None, "transaction"):
        raise ImproperlyConfigured("pooling in DATABASE_URL must be transaction, or left out.")
    # Behind PgBouncer each transaction may run in another session of PostgreSQL: no prepared
    # statement and no open cursor can be used by the next one.
    has_own_session = pooling is None
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        # With open connections and prepared statements a login is two round trips.
        "CONN_MAX_AGE": None,
        "DISABLE_SERVER_SIDE_CURSORS": not has_own_session,
        "OPTIONS": {
            "connect_timeout": 3,
            # A server that vanishes without closing its connections is noticed in 10 seconds.
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 2,
            "tcp_user_timeout": 10_000,
            "server_side_binding": True,
            "prepare_threshold": _ONLY_ON_REQUEST if has_own_session else None,
            **options,
        },
    }


def _sqlite(path: Path) -> dict[str, Any]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 20,
            # A transaction takes the write lock when it begins, so that two never deadlock.
            "transaction_mode": "IMMEDIATE",
            # FULL: a login event that was recorded must survive a power cut.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            " PRAGMA busy_timeout=20000; PRAGMA cache_size=-16000;",
        },
        "TEST": {"NAME": path.with_name("test.sqlite3")},
    }
