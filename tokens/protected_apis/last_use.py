"""Which secrets of protected APIs this process has met in the present minute (contract 3). Pure.

The first use of a minute is stored (`tokens.store.api_secret_use`), the others are not.
"""

from datetime import datetime


class UsesOfThisMinute:
    """As many entries as there are secrets that authenticate protected APIs."""

    def __init__(self) -> None:
        self._minutes: dict[int, datetime] = {}

    def is_first(self, secret_id: int, at: datetime) -> bool:
        """Whether it is the first use of this secret in its minute, which is thereby taken."""
        minute = minute_of(at)
        if self._minutes.get(secret_id) == minute:
            return False
        self._minutes[secret_id] = minute
        return True


def minute_of(at: datetime) -> datetime:
    """The start of the minute of this moment."""
    return at.replace(second=0, microsecond=0)
