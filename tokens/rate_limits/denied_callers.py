"""Which denied callers this process has to record: each once an hour (contract 1, Limits). Pure."""

from collections import Counter, OrderedDict
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from tokens.rate_limits.throttle import ThrottleCause

_SIZE = 4096
_WAITING = 1000
# Of one address in an hour: who tries one client ID after the other fills no table.
_IDS_OF_ADDRESS = 10


class Denied(NamedTuple):
    """The first denial of a caller in an hour."""

    hour: datetime
    cause: ThrottleCause
    client_id: str
    source: str
    at: datetime
    reference: UUID


class DeniedCallers:
    """As many as are remembered, and those of them that wait to be stored."""

    def __init__(self) -> None:
        self._noted: OrderedDict[tuple[ThrottleCause, str, str], datetime] = OrderedDict()
        self._ids: Counter[str] = Counter()  # of each source, in the present hour
        self._hour: datetime | None = None
        self._waiting: list[Denied] = []

    def note(
        self, cause: ThrottleCause, client_id: str, source: str, at: datetime, reference: UUID
    ) -> None:
        """Takes a denial. A client over its limit has no source: it may have many."""
        hour = at.replace(minute=0, second=0, microsecond=0)
        if hour != self._hour:
            self._hour = hour
            self._ids.clear()
            self._noted.clear()
        key = (cause, client_id, source)
        if key in self._noted or len(self._waiting) >= _WAITING:
            return
        if source and client_id:
            if self._ids[source] >= _IDS_OF_ADDRESS:
                return
            self._ids[source] += 1
        self._noted[key] = at
        if len(self._noted) > _SIZE:
            self._noted.popitem(last=False)
        self._waiting.append(Denied(hour, cause, client_id, source, at, reference))

    def take(self) -> list[Denied]:
        """Those that wait to be stored, once."""
        waiting, self._waiting = self._waiting, []
        return waiting
