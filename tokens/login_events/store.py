"""Where events and counters are kept: one statement on PostgreSQL, one transaction on SQLite.

Both keep the promise of `LoginEventStore`: the event and what it counts become durable together or
not at all.
"""

from datetime import datetime
from functools import cache
from typing import Protocol

from django.conf import settings

from tokens.login_events.entries import CountedLogin, Event, FailedLogin, LimiterOutOfReach
from tokens.rate_limits.limits import Quota, Throttle


class LoginEventStore(Protocol):
    """All methods raise django.db.DatabaseError or LimiterOutOfReach."""

    def add(self, event: Event) -> None:
        """Keeps an event that counts against nothing."""

    def add_counted(self, event: Event, counted: CountedLogin) -> Quota | Throttle:
        """Keeps the event of an authenticated login, its count and the use of its secret.

        Unless its limit is reached: then nothing is kept.
        """

    def add_failed(self, event: Event, failed: FailedLogin) -> Throttle | None:
        """Keeps the event of a failed login and counts it, unless its caller has to wait."""

    def quota(self, system_user_id: int, limit: int, at: datetime) -> Quota:
        """The client's counter as it stands; nothing is counted."""


def login_event_store() -> LoginEventStore:
    """The ledger of this process, chosen by its database and by REDIS_URL."""
    return _ledger(settings.DATABASES["default"]["ENGINE"], settings.REDIS_URL)


@cache
def _ledger(engine: str, redis_url: str) -> LoginEventStore:
    # Imported when chosen: who needs no Redis does not carry its client.
    kept: LoginEventStore
    if engine.endswith("postgresql"):
        from tokens.login_events.postgresql import PostgresqlLoginEventStore

        kept = PostgresqlLoginEventStore()
    else:
        from tokens.login_events.sqlite import SqliteLoginEventStore

        kept = SqliteLoginEventStore()
    if redis_url:
        from tokens.login_events.redis import RedisCountedLedger

        return RedisCountedLedger(kept, redis_url)
    return kept


__all__ = [
    "CountedLogin",
    "Event",
    "FailedLogin",
    "LimiterOutOfReach",
    "LoginEventStore",
    "login_event_store",
]
