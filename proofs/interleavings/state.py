"""What all parts of a run share: its random numbers, its time, and what must be true by now."""

from collections import Counter, deque
from dataclasses import dataclass, field
from random import Random
from uuid import UUID
from zlib import crc32

from proofs.interleavings.logins.login import Asked
from proofs.interleavings.oracle.claims import Decided, Limits
from proofs.interleavings.oracle.history import History
from proofs.interleavings.oracle.status_lists import IssuedTokens
from proofs.interleavings.simulated_time import SimulatedTime
from proofs.interleavings.world import Credentials
from taxpayers.models import PermissionRequest
from tokens.calls import Event


@dataclass(slots=True, eq=False)
class RunState:
    """One for each run; `step` is the number of the present one."""

    rng: Random
    time: SimulatedTime
    credentials: Credentials
    history: History
    limits: Limits = field(default_factory=Limits)
    tokens: IssuedTokens = field(default_factory=IssuedTokens)
    stored: dict[UUID, Event] = field(default_factory=dict)
    connections: list[PermissionRequest] = field(default_factory=list)  # as they were asked
    decided: Decided = field(default_factory=dict)
    step: int = 0
    renewed_in: int = 0  # the last step that may have renewed epochs without a change
    digest: int = 0  # of all that was done and chosen so far: the same for the same seed
    # How logins ended, and which changes were committed.
    outcomes: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    latest: deque[Asked] = field(default_factory=lambda: deque(maxlen=12))  # requests
    latest_changes: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def note(self, *what: object) -> None:
        self.digest = crc32(f"{self.digest} {self.step} {what}".encode())
