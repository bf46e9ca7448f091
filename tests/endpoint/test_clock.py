"""The database's clock counts: a node with a wrong clock can neither void a limit nor a date."""

import logging
import random
import time
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest

from taxpayers.rules import Refused
from tokens import uptime
from tokens.operations import clock
from tokens.operations.clock import DatabaseClock

SECOND = timedelta(seconds=1)
AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


class Machine:
    """A node whose clocks stand still until they are moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.up = 1000.0
        self.wall = AT
        monkeypatch.setattr(clock, "uptime", lambda: self.up)
        monkeypatch.setattr(clock, "wall_clock", lambda: self.wall)

    def pass_time(self, seconds: float) -> None:
        """Also while it is suspended: see `tokens.uptime`."""
        self.up += seconds
        self.wall += seconds * SECOND


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


Answer = tuple[float, float, float]  # asked for at, time shown, arrived at; AT is 0 and 1000


@pytest.mark.parametrize(
    ("claim", "answers", "ahead"),
    [
        ("the first answer is a bound, and it is taken", [(0, 5, 2)], 5),
        ("an answer without any delay is the time", [(0, 5, 0)], 5),
        ("a quicker answer takes the estimate down to its bound", [(0, 5, 2), (10, 14, 10.5)], 4),
        ("a quicker answer takes it up to its bound", [(0, 3, 0), (10, 14, 10.5)], 3.5),
        ("an answer whose bounds hold already changes nothing", [(0, 5, 2), (10, 15.5, 11)], 5),
        ("a slow answer changes nothing", [(0, 5, 0), (10, 20, 20)], 5),
        ("a slow answer that shows another time does", [(0, 5, 0), (10, 30, 20)], 10),
        ("a database whose clock was put forward", [(0, 5, 0), (10, 3610, 10.5)], 3599.5),
        ("a database whose clock was put back", [(0, 5, 0), (10, -3590, 10.5)], -3600),
        ("a clock that drifts is followed", [(n, 1.001 * n, n + 0.001) for n in range(100)], 0.098),
        ("a database whose clock is behind", [(0, -5, 0.001)], -5),
    ],
)
def test_each_answer_bounds_the_databases_time(
    machine: Machine, claim: str, answers: list[Answer], ahead: float
) -> None:
    database = DatabaseClock()
    for asked_at, shown, arrived_at in answers:
        database.observe(1000 + asked_at, AT + shown * SECOND, 1000 + arrived_at)
    assert database.now() == pytest.approx(AT + ahead * SECOND, abs=timedelta(microseconds=2))
    assert database.difference() == AT - database.now()


def test_the_estimate_is_never_off_by_more_than_the_shortest_round_trip(machine: Machine) -> None:
    for seed in range(50):
        chance, database = random.Random(seed), DatabaseClock()  # noqa: S311 - of delays
        ahead = chance.uniform(-100, 100)
        shortest = 1e9
        for _ in range(20):
            there, back = chance.expovariate(50), chance.expovariate(5)
            shown = machine.wall + (there + ahead) * SECOND
            database.observe(machine.up, shown, machine.up + there + back)
            shortest = min(shortest, there + back)
            off = abs(database.now() - (machine.wall + ahead * SECOND)).total_seconds()
            assert off <= shortest + 1e-5, seed
            machine.pass_time(chance.uniform(0, 1000))


def test_a_clock_that_is_set_changes_nothing_and_time_goes_on_in_a_suspended_machine(
    machine: Machine,
) -> None:
    database = DatabaseClock()
    database.observe(machine.up, AT, machine.up)
    for off in (-3600, 3600):
        machine.wall = AT + off * SECOND
        assert database.now() == AT
        assert database.difference() == off * SECOND
    machine.wall = AT
    machine.pass_time(3600)
    assert database.now() == AT + 3600 * SECOND
    assert not database.is_wrong()


def test_the_uptime_counts_what_a_machine_is_suspended() -> None:
    assert time.clock_gettime(time.CLOCK_BOOTTIME) == pytest.approx(uptime.uptime(), abs=1)
    with patch.object(time, "clock_gettime", lambda which: which):  # this machine never was
        assert uptime.uptime() == time.CLOCK_BOOTTIME


@pytest.mark.parametrize(
    ("off", "is_wrong"), [(0, False), (1.999, False), (2, False), (2.001, True), (3600, True)]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_clock_that_is_more_than_two_seconds_off_is_wrong(
    machine: Machine, off: float, sign: int, is_wrong: bool, caplog: pytest.LogCaptureFixture
) -> None:
    database = DatabaseClock()
    database.observe(machine.up, AT + sign * off * SECOND, machine.up)
    assert database.is_wrong() is is_wrong
    if not is_wrong:
        database.check()
        return
    with caplog.at_level(logging.ERROR), pytest.raises(Refused) as refused:
        database.check()
    assert refused.value.reason == "temporarily_unavailable"
    (record,) = caplog.records
    assert vars(record)["seconds_ahead"] == pytest.approx(-sign * off, abs=1e-5)
