"""Does this node's clock agree with the database's, which decides for all nodes? (contract 1)

Limits and dates count by the database's clock. What a node stamps itself, such as the id of a login
event, must not be far from it.
"""

import logging
from datetime import datetime, timedelta

from taxpayers.rules import Refused
from tokens.refusals.table import ProtocolReason

MAX_DIFFERENCE = timedelta(seconds=2)

logger = logging.getLogger("tokens.clock")


def difference(before: datetime, database: datetime, after: datetime) -> timedelta:
    """How far the node's clock is off, at least, if it showed `before` and `after` around a query
    at whose start the database's clock showed `database`. Positive: the node is behind.
    """
    if database > after:
        return database - after
    return min(database - before, timedelta())


def check_clock(before: datetime, database: datetime, after: datetime) -> None:
    """Raises Refused: a node with a wrong clock answers 503 until its clock is right."""
    off = difference(before, database, after)
    if abs(off) > MAX_DIFFERENCE:
        logger.error("the clock of this node is wrong", extra={"seconds_off": off.total_seconds()})
        raise Refused(ProtocolReason.TEMPORARILY_UNAVAILABLE)
