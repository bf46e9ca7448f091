"""The registry read from a real streaming replica: how old what it says may be, and no older."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

from taxpayers.facts.replica import Freshness
from tests.conftest import StartService
from tests.live.test_live_service import logins, new_client, recorded
from tests.servers.postgres import Postgres, start_replica
from tests.servers.processes import stopping
from tests.support.erp import Erp

BOUND_SECONDS = 4.0


# --- How long a look at the lag holds -------------------------------------------------------------


@dataclass
class Clock:
    """A clock and a replica of the test."""

    now: float = 100.0
    lag: float | None = 0.0
    asked: int = 0

    def look(self) -> float | None:
        self.asked += 1
        return self.lag


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def freshness(clock: Clock) -> Freshness:
    return Freshness(1.0, clock.look, lambda: clock.now)


def test_a_look_at_the_lag_holds_until_the_bound_is_reached(
    clock: Clock, freshness: Freshness
) -> None:
    clock.lag = 0.3
    assert freshness.holds()
    clock.now += 0.69
    assert freshness.holds()
    assert clock.asked == 1
    clock.now += 0.02  # what was replayed at the first look is a second old now
    assert freshness.holds()
    assert clock.asked == 2


@pytest.mark.parametrize("lag", [None, 1.0, 3600.0, -1.0])
def test_a_replica_that_lags_is_not_asked_nor_one_with_another_clock(
    clock: Clock, freshness: Freshness, lag: float | None
) -> None:
    clock.lag = lag
    assert not freshness.holds()


def test_a_replica_that_lags_is_looked_at_only_now_and_then(
    clock: Clock, freshness: Freshness
) -> None:
    clock.lag = 5.0
    assert not any(freshness.holds() for _ in range(100))
    assert clock.asked == 1
    clock.lag, clock.now = 0.0, clock.now + 0.3
    assert freshness.holds()


def test_a_replica_that_failed_is_left_alone_for_a_while(
    clock: Clock, freshness: Freshness
) -> None:
    assert freshness.holds()
    freshness.failed()
    clock.now += 4
    assert not freshness.holds()
    clock.now += 2
    assert freshness.holds()


# --- A real replica -------------------------------------------------------------------------------


@dataclass
class Pair:
    """One database on a primary and on its replica."""

    url: str
    replica: Postgres

    @property
    def settings(self) -> dict[str, str]:
        return {
            "REPLICA_DATABASE_URL": self.replica.url(self.url.rpartition("/")[2]),
            "REPLICA_MAX_LAG_SECONDS": str(BOUND_SECONDS),
        }

    def execute(self, sql: str, *parameters: str) -> None:
        """On the primary."""
        with psycopg.connect(self.url) as connection:
            connection.execute(sql.encode(), parameters)

    def stop_replaying(self) -> None:
        """The replica keeps what it knows and learns no more, after it has caught up."""
        deadline = time.monotonic() + 10
        with psycopg.connect(self.url) as primary, psycopg.connect(self.replica.url()) as replica:
            (row,) = primary.execute("SELECT pg_current_wal_lsn()::text")
            while replica.execute(
                "SELECT pg_last_wal_replay_lsn() < %s::pg_lsn", [row[0]]
            ).fetchone() != (False,):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            replica.execute("SELECT pg_wal_replay_pause()")


@pytest.fixture
def pair(postgres: Postgres, postgres_url: str) -> Iterator[Pair]:
    replica = start_replica(postgres)
    with stopping(replica):
        yield Pair(postgres_url, replica)


def block(pair: Pair, erp: Erp) -> None:
    pair.execute(
        "UPDATE system_users SET blocked_at = now(), blocked_by = 'a', blocked_reason = 'test'"
        " WHERE client_id = %s",
        erp.client_id,
    )


def test_a_block_bites_within_the_bound_when_the_replica_stands_still(
    service: StartService, pair: Pair
) -> None:
    node = service(pair.url, **pair.settings)
    erp = new_client(node, "--logins-per-minute", "0")
    for _ in range(3):
        assert logins([node], erp, 16) == {200: 16}  # its own events keep the replica fresh
    pair.stop_replaying()
    blocked_at = time.monotonic()
    block(pair, erp)
    # The replica is really asked: it does not know of the block yet.
    assert logins([node], erp, 1) == {200: 1}
    while logins([node], erp, 1) == {200: 1}:
        assert time.monotonic() < blocked_at + BOUND_SECONDS + 1
        time.sleep(0.1)
    assert logins([node], erp, 8) == {400: 8}


def test_what_was_registered_a_moment_ago_logs_in_at_once(
    service: StartService, pair: Pair
) -> None:
    node = service(pair.url, **pair.settings | {"REPLICA_MAX_LAG_SECONDS": "600"})
    assert logins([node], new_client(node), 2) == {200: 2}
    pair.stop_replaying()
    issued = node.manage("issue_credentials", "C1000000001", "--name", "new")
    assert logins([node], Erp(issued["client_id"], issued["client_secret"]), 4) == {200: 4}


def test_a_lost_replica_costs_no_login(service: StartService, pair: Pair) -> None:
    node = service(pair.url, **pair.settings)
    erp = new_client(node, "--logins-per-minute", "0")
    assert logins([node], erp, 16) == {200: 16}
    pair.replica.stop()
    assert logins([node], erp, 16) == {200: 16}
    assert recorded(node, erp) == 32


def test_without_a_replica_url_a_block_bites_at_once(service: StartService, pair: Pair) -> None:
    node = service(pair.url)
    erp = new_client(node, "--logins-per-minute", "0")
    assert logins([node], erp, 4) == {200: 4}
    pair.stop_replaying()
    block(pair, erp)
    assert logins([node], erp, 4) == {400: 4}
