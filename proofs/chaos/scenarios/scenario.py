"""What a scenario is, and what it may do while callers log in."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Generic

from typing_extensions import TypeVar

from proofs.chaos.answers import Answer
from proofs.chaos.callers import Caller
from proofs.chaos.cluster import Cluster
from proofs.chaos.load import Load
from proofs.chaos.promises import Promise
from proofs.chaos.site import Node, Site

AnySite = TypeVar("AnySite", bound=Site, default=Cluster)


@dataclass
class Stage(Generic[AnySite]):
    """The cluster under load, and the marks that a scenario leaves on its time line."""

    cluster: AnySite
    load: Load
    began_at: float = 0.0
    ended_at: float = 0.0
    forbidden: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    # What the next scenario needs: done after the load has ended, in reverse order.
    afterwards: ExitStack = field(default_factory=ExitStack)

    def begins(self) -> None:
        """The fault begins now; it has not ended before `ends`."""
        self.began_at = self.ended_at = time.monotonic()

    def ends(self) -> None:
        """The fault has ended: from now on the service must recover by itself."""
        self.ended_at = time.monotonic()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def forbid(self, caller: Caller) -> None:
        """From now on this caller must get no token."""
        self.forbidden.setdefault(caller.name, time.monotonic())

    def probe(self, node: Node, caller: Caller) -> Answer:
        """A login on this very node; it is judged like all others."""
        answer = self.cluster.probe(node, caller)
        self.load.answers.append(answer)
        return answer

    def note(self, text: str) -> None:
        """What the report says beside the figures."""
        self.notes.append(text)


Act = Callable[[Stage[AnySite]], None]


@dataclass(frozen=True)
class Scenario(Generic[AnySite]):
    name: str
    title: str
    act: Act[AnySite]
    promise: Promise = field(default_factory=Promise)


class Scenarios(list[Scenario[AnySite]]):
    def add(self, promise: Promise) -> Callable[[Act[AnySite]], Act[AnySite]]:
        """Decorates what is done: its name, and the first line of its docstring as the title."""

        def decorate(act: Act[AnySite]) -> Act[AnySite]:
            title = str(act.__doc__).partition("\n")[0]
            self.append(Scenario(act.__name__.replace("_", "-"), title, act, promise))
            return act

        return decorate
