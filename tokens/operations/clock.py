"""The database's clock, which decides for all nodes, as this process estimates it (contract 1).

For what is decided before a statement, and for what a node stamps itself, such as an event's id.
"""

import logging
from datetime import UTC, datetime, timedelta

from taxpayers.rules import Refused
from tokens.refusals.table import ProtocolReason
from tokens.uptime import uptime

MAX_DIFFERENCE = timedelta(seconds=2)

logger = logging.getLogger("tokens.clock")


def wall_clock() -> datetime:
    """This node's own clock."""
    return datetime.now(UTC)


class DatabaseClock:
    """Estimates the database's time from the answers of the database.

    An answer that shows the time T was asked for before T and arrived after it. So each answer is a
    bound that holds for sure, and an estimate within all bounds is off by less than one round trip.
    Until the first answer it is the node's clock, as it is for SQLite, which runs in this process.
    """

    def __init__(self) -> None:
        self._ahead: float | None = None  # of the uptime, in seconds

    def observe(self, before: float, database: datetime, after: float) -> None:
        """The database showed this time in the answer to a statement under way in between."""
        shown = database.timestamp()
        ahead = shown - before if self._ahead is None else self._ahead
        self._ahead = min(max(ahead, shown - after), shown - before)

    def now(self) -> datetime:
        if self._ahead is None:
            return wall_clock()
        return datetime.fromtimestamp(uptime() + self._ahead, UTC)

    def difference(self) -> timedelta:
        """How far this node's clock is ahead of the database's; negative if it is behind."""
        return wall_clock() - self.now()

    def is_wrong(self) -> bool:
        """Whether this node's clock is too far off for logins."""
        return abs(self.difference()) > MAX_DIFFERENCE

    def check(self) -> None:
        """Raises Refused: a node with a wrong clock answers 503 until its clock is right."""
        off = self.difference()
        if abs(off) > MAX_DIFFERENCE:
            logger.error(
                "the clock of this node is wrong", extra={"seconds_ahead": off.total_seconds()}
            )
            raise Refused(ProtocolReason.TEMPORARILY_UNAVAILABLE)


class LocalClock(DatabaseClock):
    """Where the database runs in this process: its clock is that of the node."""

    def observe(self, before: float, database: datetime, after: float) -> None:
        """Nothing to estimate."""
