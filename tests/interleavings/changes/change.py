"""What a change of the registry is in a run, and what it is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from django.db import connection

from taxpayers.services import Author
from tests.interleavings.registry import Registry
from tests.interleavings.world import Credentials

AUTHOR = Author("officer")
_Choice = TypeVar("_Choice")


class NothingToChange(Exception):
    """No row is in the state that this change begins with."""


@dataclass(frozen=True, slots=True)
class Context:
    """For one change: its random numbers, the registry as it was committed, and the time.

    `at` is a moment in the past that no other change has; queries use Django's present connection.
    """

    rng: Random
    registry: Registry
    credentials: Credentials
    now: datetime
    at: datetime

    def choose(self, rows: Sequence[_Choice]) -> _Choice:
        if not rows:
            raise NothingToChange
        return self.rng.choice(rows)

    def end(self) -> datetime | None:
        """A last moment: mostly far away or none, else passed or soon."""
        chosen = self.rng.random()
        if chosen < 0.6:
            return None if chosen < 0.3 else self.far()
        if chosen < 0.8:
            return self.soon()
        return self.passed()

    def far(self) -> datetime:
        return self.now + timedelta(days=1000, seconds=self.rng.randrange(10_000))

    def soon(self) -> datetime:
        return self.now + timedelta(milliseconds=self.rng.randrange(1, 60_000))

    def passed(self) -> datetime:
        return self.now - timedelta(seconds=self.rng.randrange(1, 500_000))

    def execute(self, sql: str, *parameters: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)


@dataclass(frozen=True, slots=True)
class Change:
    """One kind of change: which tables it may alter, and how often it is made."""

    name: str
    tables: tuple[str, ...]
    weight: float
    is_counter_changed: bool
    is_held: bool  # whether its transaction may stay open for some steps
    make: Callable[[Context], None]


class Changes:
    """Collects kinds of changes."""

    def __init__(self) -> None:
        self.kinds: list[Change] = []

    def add(
        self,
        *tables: str,
        weight: float = 4,
        is_counter_changed: bool = False,
        is_held: bool = True,
    ) -> Callable[[Callable[[Context], None]], Callable[[Context], None]]:
        """Decorates the function that makes a change."""

        def decorate(make: Callable[[Context], None]) -> Callable[[Context], None]:
            self.kinds.append(
                Change(make.__name__, tables, weight, is_counter_changed, is_held, make)
            )
            return make

        return decorate
