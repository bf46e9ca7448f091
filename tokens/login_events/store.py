"""Where login events and counters are stored: the protocol, and the choice by database engine.

In every store the event and what it counts become durable together or not at all: in one statement
on PostgreSQL, in one transaction on SQLite.
"""

from datetime import datetime
from typing import Protocol

from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from tokens.login_events.entries import CountedLogin, Event, FailedLogin
from tokens.login_events.postgresql import PostgresqlLoginEventStore
from tokens.login_events.sqlite import SqliteLoginEventStore
from tokens.rate_limits.limits import Quota, Throttle


class LoginEventStore(Protocol):
    """All methods raise django.db.DatabaseError."""

    def add(self, event: Event) -> None:
        """Stores an event that counts against nothing."""

    def add_counted(self, event: Event, counted: CountedLogin) -> Quota | Throttle:
        """Stores the event of an authenticated login, its count and the use of its secret.

        Unless the limit is reached: then nothing is stored.
        """

    def add_failed(self, event: Event, failed: FailedLogin) -> Throttle | None:
        """Stores the event of a failed login and counts it, unless its caller has to wait."""

    def quota(self, system_user_id: int, limit: int, at: datetime) -> Quota:
        """The client's quota at this moment; nothing is counted."""


_STORES: dict[str, LoginEventStore] = {
    "postgresql": PostgresqlLoginEventStore(),
    "sqlite": SqliteLoginEventStore(),
}


def login_event_store() -> LoginEventStore:
    """The store of the default database.

    Raises django.core.exceptions.ImproperlyConfigured for an engine that has no store.
    """
    engine = connection.vendor
    store = _STORES.get(engine)
    if store is None:
        raise ImproperlyConfigured(
            f"No login event store for the database engine {engine}: use {' or '.join(_STORES)}."
        )
    return store
