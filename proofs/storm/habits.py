"""How client programs of the field renew their tokens, and try again (field notes). Pure."""

import random
from collections.abc import Callable
from dataclasses import dataclass

LIFE, HOUR = 3600.0, 3600.0

Renew = Callable[[float, float, random.Random], float]  # issued at, X-Renew-At → next login
Retry = Callable[[int, float, random.Random], float]  # failures so far, Retry-After → pause


@dataclass(frozen=True)
class Habit:
    """One of them: its share of the clients, when it renews, and how long it waits after a 503."""

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
