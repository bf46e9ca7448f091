"""The way between nodes and database is slow, is gone, or leads to another server."""

import time
from functools import partial

from proofs.chaos.promises import Promise
from proofs.chaos.scenarios.database import UNDER_WAY
from proofs.chaos.scenarios.scenario import Scenario, Stage

# Of a fault in which the database goes on storing what nodes have given up: a number that only says
# that nothing repeats it, for 8 honest callers, each told 503 a few times.
IN_VAIN_AT_MOST = 60
_SLOW_SECONDS, _TOO_SLOW_SECONDS = 0.1, 1.0  # in each direction
_END_WAITING = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def _delay(stage: Stage, delay: float) -> None:
    stage.begins()
    for node in stage.cluster.nodes:
        node.door.delay_seconds = delay
    stage.wait(5)
    for node in stage.cluster.nodes:
        node.door.delay_seconds = 0
    stage.ends()


def _partition(stage: Stage) -> None:
    door = stage.cluster.nodes[0].door
    stage.begins()
    door.vanish()
    stage.wait(6)
    door.come_back()
    stage.ends()


def _fail_over(stage: Stage) -> None:
    """The primary falls silent, its connections stay open, and the standby takes over."""
    cluster = stage.cluster
    stage.begins()
    cluster.primary.hang()
    stage.wait(3)
    former = cluster.promote_standby()
    stage.ends()
    stage.afterwards.callback(cluster.add_standby)
    stage.afterwards.callback(former.stop)
    stage.afterwards.callback(former.crash)
    _wait_until_ready(stage)


def _wait_until_ready(stage: Stage) -> None:
    began = time.monotonic()
    while not all(node.is_ready for node in stage.cluster.nodes):
        if time.monotonic() > began + 30:
            stage.note("/health/ready is still 503 after 30 s")
            return
        stage.wait(0.2)
    stage.note(f"/health/ready of both nodes is 200 again after {time.monotonic() - began:.1f} s")


def _lose_standby(stage: Stage) -> None:
    """No commit is confirmed any more, until the runbook's command is given."""
    cluster = stage.cluster
    stage.begins()
    cluster.standby.crash()
    stage.wait(6)
    cluster.primary.set("synchronous_standby_names", "")
    stage.ends()
    stage.afterwards.callback(cluster.add_standby)
    stage.afterwards.callback(cluster.standby.stop)


def _lose_standby_and_sessions(stage: Stage) -> None:
    """What waits for the standby is only in the log of the primary, when both are lost.

    A node whose session ends looks up what it has stored: that is no record yet.
    """
    cluster = stage.cluster
    stage.begins()
    cluster.standby.crash()
    ended = 0
    with cluster.connect() as connection:
        for _ in range(15):
            stage.wait(0.2)
            ended += len(connection.execute(_END_WAITING).fetchall())
    cluster.primary.crash()
    cluster.standby.restart()
    former = cluster.promote_standby()
    stage.ends()
    stage.afterwards.callback(cluster.add_standby)
    stage.afterwards.callback(former.stop)
    stage.note(f"{ended} sessions ended while their commits waited for the standby")
    if not ended:
        raise AssertionError("no commit waited for the standby")


SCENARIOS = (
    Scenario(
        "slow-database",
        f"each message between nodes and database takes {_SLOW_SECONDS:g} s, for 5 s",
        partial(_delay, delay=_SLOW_SECONDS),
        Promise(recovers_within=0, may_refuse=False),
    ),
    Scenario(
        "too-slow-database",
        f"each message between nodes and database takes {_TOO_SLOW_SECONDS:g} s, for 5 s",
        partial(_delay, delay=_TOO_SLOW_SECONDS),
        # Each login that is sent is stored, and its answer comes too late.
        Promise(recovers_within=2, never_received=IN_VAIN_AT_MOST),
    ),
    Scenario(
        "partition",
        "one node is cut off from the database for 6 s: packets are dropped",
        _partition,
        Promise(recovers_within=2, never_received=UNDER_WAY),
    ),
    Scenario(
        "lost-standby",
        "the synchronous standby is lost; after 6 s the runbook's command is given",
        _lose_standby,
        # Commits wait for the standby after they are in the log: what gave up is stored.
        Promise(recovers_within=2, never_received=IN_VAIN_AT_MOST),
    ),
    Scenario(
        "unconfirmed",
        "the standby is lost, sessions end meanwhile, then the primary: the standby is promoted",
        _lose_standby_and_sessions,
        Promise(recovers_within=2, never_received=UNDER_WAY),
    ),
    Scenario(
        "failover",
        "the primary falls silent with its connections open; after 3 s the standby is promoted",
        _fail_over,
        Promise(recovers_within=2, never_received=UNDER_WAY),
    ),
)
