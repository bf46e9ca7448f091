"""What this process knows: facts of clients, the database's time, the callers that must wait.

None of it decides: what is known here is confirmed by the statement that records the login.
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from django.conf import settings
from django.db import connection

from taxpayers.facts.local import LocalFacts, SharedFacts
from taxpayers.facts.values import FactsQuery, Reading
from tokens.operations.clock import DatabaseClock, LocalClock
from tokens.operations.repeated_requests import RepeatedRequests
from tokens.rate_limits.call_limit import CallLimit
from tokens.rate_limits.denied_callers import DeniedCallers
from tokens.rate_limits.throttle import DenialCache
from tokens.status_lists.assignment import ReservedIndexes
from tokens.store.api_secret_use import UsesOfThisMinute


@dataclass(frozen=True, slots=True)
class Node:
    """One for each process; the local facts are shared by all processes of a machine."""

    local_facts: LocalFacts
    clock: DatabaseClock = field(default_factory=DatabaseClock)
    denials: DenialCache = field(default_factory=DenialCache)
    repeated_requests: RepeatedRequests = field(default_factory=RepeatedRequests)
    denied_callers: DeniedCallers = field(default_factory=DeniedCallers)
    reserved_indexes: ReservedIndexes = field(default_factory=ReservedIndexes)
    revocations: CallLimit = field(default_factory=lambda: CallLimit(4096))
    api_secret_uses: UsesOfThisMinute = field(default_factory=UsesOfThisMinute)

    def recall(self, query: FactsQuery) -> Reading | None:
        """What this node knows of the client; None if it must ask, also because of its clock."""
        facts = self.local_facts.find(query)
        if facts is None or self.clock.is_wrong():
            return None
        return Reading(self.clock.now(), facts)

    def learn(self, query: FactsQuery, reading: Reading) -> None:
        """Stores what is known now of a client that has proved itself."""
        if reading.facts is not None:
            self.local_facts.store(query, reading.facts)


@cache
def this_node() -> Node:
    """The knowledge of this process."""
    facts = SharedFacts(
        Path(settings.LOCAL_FACTS_DIR),
        max_bytes=settings.LOCAL_FACTS_MEGABYTES * 2**20,
        key=settings.SECRET_KEY.encode(),
    )
    return Node(facts, DatabaseClock() if connection.vendor == "postgresql" else LocalClock())
