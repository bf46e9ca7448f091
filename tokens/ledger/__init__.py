"""Where events and counters are kept: one statement on PostgreSQL, one transaction on SQLite.

Both keep the same promise, which `Ledger` states: the event and what it counts become durable
together or not at all.
"""

from datetime import datetime
from functools import cache
from typing import Protocol

from django.conf import settings

from tokens.ledger.entries import Counted, Event, Failed, LimiterOutOfReach
from tokens.limits import Allowance, Denial


class Ledger(Protocol):
    """All methods raise django.db.DatabaseError or LimiterOutOfReach."""

    def add(self, event: Event) -> None:
        """Keeps an event that counts against nothing."""

    def add_counted(self, event: Event, counted: Counted) -> Allowance | Denial:
        """Keeps the event of an authenticated login, its count and the use of its secret.

        Unless its limit is reached: then nothing is kept.
        """

    def add_failed(self, event: Event, failed: Failed) -> Denial | None:
        """Keeps the event of a failed login and counts it, unless its caller has to wait."""

    def allowance(self, system_user_id: int, limit: int, at: datetime) -> Allowance:
        """The client's counter as it stands; nothing is counted."""


def ledger() -> Ledger:
    """The ledger of this process, chosen by its database and by REDIS_URL."""
    return _ledger(settings.DATABASES["default"]["ENGINE"], settings.REDIS_URL)


@cache
def _ledger(engine: str, redis_url: str) -> Ledger:
    # Imported when chosen: who needs no Redis does not carry its client.
    kept: Ledger
    if engine.endswith("postgresql"):
        from tokens.ledger.postgresql import PostgresqlLedger

        kept = PostgresqlLedger()
    else:
        from tokens.ledger.sqlite import SqliteLedger

        kept = SqliteLedger()
    if redis_url:
        from tokens.ledger.redis import RedisCountedLedger

        return RedisCountedLedger(kept, redis_url)
    return kept


__all__ = ["Counted", "Event", "Failed", "Ledger", "LimiterOutOfReach", "ledger"]
