"""The way between nodes and database is slow, or leads to another server; a standby is lost."""

import time
from functools import partial

from proofs.chaos.promises import Promise
from proofs.chaos.scenarios.database import UNDER_WAY
from proofs.chaos.scenarios.scenario import Scenario, Stage

# Of a fault in which the database goes on storing what nodes have given up: a number that only says
# that nothing repeats it, for 8 honest callers, each told 503 a few times.
IN_VAIN_AT_MOST = 60
_SLOW_SECONDS, _TOO_SLOW_SECONDS = 0.1, 1.0  # in each direction


def _delay(stage: Stage, delay: float) -> None:
    stage.begins()
    for node in stage.cluster.nodes:
        node.door.delay_seconds = delay
    stage.wait(5)
    for node in stage.cluster.nodes:
        node.door.delay_seconds = 0
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
        "lost-standby",
        "the synchronous standby is lost; after 6 s the runbook's command is given",
        _lose_standby,
        # Commits wait for the standby after they are in the log: what gave up is stored.
        Promise(recovers_within=2, never_received=IN_VAIN_AT_MOST),
    ),
    Scenario(
        "failover",
        "the primary falls silent with its connections open; after 3 s the standby is promoted",
        _fail_over,
        Promise(recovers_within=2, never_received=UNDER_WAY),
    ),
)
