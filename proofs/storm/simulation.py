"""What follows when the service returns.

The tokens of all clients have ended. They come by their habits, on a simulated clock, to processes
that each answer so many logins a second. Every token has the real `X-Renew-At`, and every 503 the
real `Retry-After`. The habits are those of the field: when to renew a token, when to try again.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from identity.server.overload import MAX_WAIT_SECONDS
from tokens.answers.pauses import Pauses
from tokens.lifetime import TOKEN_LIFETIME, renew_at

LIFE, HOUR = 3600.0, 3600.0

Renew = Callable[[float, float, random.Random], float]  # issued at, X-Renew-At → next login
Retry = Callable[[int, float, random.Random], float]  # failures so far, Retry-After → pause


@dataclass(frozen=True)
class Habit:
    """Of client programs (field notes): their share, when they renew, their pause after a 503."""

    name: str
    share: int
    renew: Renew
    retry: Retry


def _obeys(failures: int, told: float, chance: random.Random) -> float:
    return told


def _obeys_and_backs_off(failures: int, told: float, chance: random.Random) -> float:
    return float(told * 2 ** min(failures, 6) * chance.uniform(1, 1.5))


def _fixed(seconds: float) -> Retry:
    return lambda failures, told, chance: seconds


def _gives_up(tries: int, pause: float, rest: float) -> Retry:
    return lambda failures, told, chance: pause if failures % tries else rest


def _before_end(seconds: float) -> Renew:
    return lambda issued, told, chance: issued + LIFE - seconds


def _on_the_hour(issued: float, told: float, chance: random.Random) -> float:
    return (issued // HOUR + 1) * HOUR + chance.uniform(0, 60)


def _on_demand(issued: float, told: float, chance: random.Random) -> float:
    return issued + LIFE + chance.expovariate(1 / 600)  # after the first 401


HABITS = (
    Habit("as our programs", 20,
          lambda issued, told, chance: issued + LIFE * chance.uniform(0.5, 0.9),
          _obeys_and_backs_off),
    Habit("X-Renew-At", 15, lambda issued, told, chance: told, _obeys),
    Habit("five minutes before the end", 10, _before_end(300), _obeys),
    Habit("at the end", 8, _before_end(0), _obeys),
    Habit("first minute of the hour", 8, _on_the_hour, _obeys),
    Habit("after a 401", 8, _on_demand, _obeys),
    Habit("backoff without a random part", 6, _before_end(60),
          lambda failures, told, chance: min(2.0**failures, 300.0)),
    Habit("every second", 2, _before_end(60), _fixed(1)),
    Habit("every 5 seconds", 5, _before_end(60), _fixed(5)),
    Habit("every 30 seconds", 5, _before_end(30), _fixed(30)),
    Habit("every minute", 4, _on_the_hour, _fixed(60)),
    Habit("three times at once, then a minute", 3, _before_end(10), _gives_up(3, 0.1, 60)),
    Habit("five times, then five minutes", 3, _on_demand, _gives_up(5, 2, 300)),
    Habit("a batch every quarter of an hour", 2, _on_demand, _fixed(900)),
    Habit("for each call, every 20 seconds", 1, lambda issued, told, chance: issued + 20,
          _fixed(20)),
)  # fmt: skip

MINUTE = 60.0
_START = datetime(2027, 1, 1, tzinfo=UTC)


@dataclass
class Seen:
    """What happened, by minute."""

    tokens: Counter[int] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0
    waiting: int = 0  # clients that have had no token since the return
    served_at: list[float] = field(default_factory=list)  # tenths of the clients have tokens


class Process:
    """One of the nodes' processes: how fast it is, and which clients it knows."""

    def __init__(self, per_second: float) -> None:
        self._takes, self._free_at = 1 / per_second, 0.0
        self.pauses = Pauses(0.0)
        self.known: set[int] = set()

    def take(self, now: float, client: int) -> float | None:
        """When the login is answered; None: it would wait too long."""
        if self._free_at - now > MAX_WAIT_SECONDS:
            return None
        # A client that it does not know costs another query.
        takes = self._takes * (1 if client in self.known else 2)
        self._free_at = max(self._free_at, now) + takes
        return self._free_at


def simulate(clients: int, processes: int, per_second: float, minutes: float, seed: int) -> Seen:
    """The storm from the return on; `per_second`: known clients that one process answers."""
    chance, seen = random.Random(seed), Seen(waiting=clients)  # noqa: S311
    nodes = [Process(per_second) for _ in range(processes)]
    shares = [habit.share for habit in HABITS]
    habit_of = chance.choices(range(len(HABITS)), shares, k=clients)
    failures = bytearray(clients)
    has_token = bytearray(clients)
    # During the outage the proxy has told them to wait for up to a minute.
    events = [
        (min(HABITS[habit_of[n]].retry(3, chance.uniform(5, 60), chance), 900) * chance.random(), n)
        for n in range(clients)
    ]
    heapq.heapify(events)
    while events and events[0][0] < minutes * MINUTE:
        now, client = events[0]
        habit, process = HABITS[habit_of[client]], chance.choice(nodes)
        minute, answered_at = int(now // MINUTE), process.take(now, client)
        if answered_at is None:
            seen.refused[minute] += 1
            failures[client] = min(failures[client] + 1, 250)
            pause = habit.retry(failures[client], process.pauses.next(now), chance)
            heapq.heapreplace(events, (now + max(pause, 0.1), client))
            continue
        seen.slowest = max(seen.slowest, answered_at - now)
        process.known.add(client)
        seen.tokens[minute] += 1
        if not has_token[client]:
            has_token[client], seen.waiting = 1, seen.waiting - 1
            if seen.waiting % max(clients // 10, 1) == 0:
                seen.served_at.append(answered_at)
        failures[client] = 0
        renew_after = renew_at(f"ci_{client}", _START, TOKEN_LIFETIME) - _START
        following = habit.renew(answered_at, answered_at + renew_after.total_seconds(), chance)
        heapq.heapreplace(events, (max(following, answered_at + 1), client))
    return seen
