"""Where events and counters are kept: one statement on PostgreSQL, one transaction elsewhere.

Both keep the same promise, which `Ledger` states: the event and what it counts become durable
together or not at all.
"""

from functools import cache
from typing import Protocol

from django.conf import settings
from django.db import connection

from tokens.ledger.entries import Counted, Event, Failed
from tokens.limits import Allowance, Denial


class Ledger(Protocol):
    """All methods raise django.db.DatabaseError, or redis.exceptions.RedisError."""

    def add(self, event: Event) -> None:
        """Keeps an event that counts against nothing."""

    def add_counted(self, event: Event, counted: Counted) -> Allowance | Denial:
        """Keeps the event of an authenticated login and counts it, unless its limit is reached."""

    def add_failed(self, event: Event, failed: Failed) -> Denial | None:
        """Keeps the event of a failed login and counts it, unless its caller has to wait."""

    def allowance(self, counted: Counted) -> Allowance:
        """The counter as it stands; nothing is counted."""


@cache
def ledger() -> Ledger:
    """The ledger of this process, chosen by its database and by REDIS_URL."""
    from tokens.ledger.portable import PortableLedger
    from tokens.ledger.postgresql import PostgresqlLedger

    kept: Ledger = PostgresqlLedger() if connection.vendor == "postgresql" else PortableLedger()
    if settings.REDIS_URL:
        from tokens.ledger.redis import RedisCountedLedger

        return RedisCountedLedger(kept, settings.REDIS_URL)
    return kept


__all__ = ["Counted", "Event", "Failed", "Ledger", "ledger"]
