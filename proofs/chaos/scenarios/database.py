"""PostgreSQL dies, hangs, is full, has no connection left, is far away; a server is lost."""

import contextlib
import time

import psycopg

from proofs.chaos.cluster import Cluster
from proofs.chaos.promises import Promise
from proofs.chaos.scenarios.scenario import Scenarios, Stage
from tests.servers.processes import NotAvailable
from tests.servers.service import is_ready

# What the lanes of four processes may have under way when PostgreSQL stops: one login each, because
# a caller waits for its answer before it logs in again. See docs/decisions.md, "Deadlines".
UNDER_WAY = 8
# Of a fault in which the database goes on storing what nodes have given up: a number that only says
# that nothing repeats it, for 8 honest callers, each told 503 a few times.
GIVEN_UP_AT_MOST = 60

SCENARIOS = Scenarios()


@SCENARIOS.add(Promise(recovers_within=3, never_received=UNDER_WAY))
def crash_database(stage: Stage) -> None:
    """`kill -9` of the whole PostgreSQL; started again after 2 s"""
    stage.begins()
    stage.cluster.primary.crash()
    stage.wait(2)
    stage.cluster.primary.restart()  # the supervisor
    stage.ends()


@SCENARIOS.add(Promise(recovers_within=2, never_received=UNDER_WAY))
def hang_database(stage: Stage) -> None:
    """PostgreSQL hangs for 5 s (SIGSTOP, SIGCONT)"""
    stage.begins()
    stage.cluster.primary.hang()
    stage.wait(5)
    stage.cluster.primary.go_on()
    stage.ends()


@SCENARIOS.add(Promise(recovers_within=2, never_received=UNDER_WAY))
def no_connections(stage: Stage) -> None:
    """Every connection of PostgreSQL is taken for 5 s, and those of the nodes are ended"""
    with contextlib.ExitStack() as held:
        stage.begins()
        until = time.monotonic() + 5
        count = 0
        while time.monotonic() < until:
            count += _take_all(stage.cluster, held)
            stage.wait(0.05)
    stage.ends()
    stage.note(f"{count} connections taken")


def _take_all(cluster: Cluster, held: contextlib.ExitStack) -> int:
    """Takes every free connection, and ends those of the nodes; how many were taken."""
    count = 0
    with contextlib.suppress(psycopg.OperationalError):
        while True:
            connection = held.enter_context(cluster.connect())
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND application_name <> 'drill'"
            )
            count += 1
    return count


@SCENARIOS.add(Promise(recovers_within=3, never_received=UNDER_WAY))
def full_disk(stage: Stage) -> None:
    """The disk of PostgreSQL is full, data and write-ahead log, for some seconds"""
    cluster, disk = stage.cluster, stage.cluster.disk
    if isinstance(disk, NotAvailable):
        raise disk
    if cluster.primary.folder != disk.folder:
        raise NotAvailable("the primary with the small disk was replaced by an earlier scenario")
    stage.begins()
    disk.fill()
    try:
        stage.wait(2)
        with contextlib.suppress(psycopg.Error), cluster.connect() as connection:
            for _ in range(8):  # the next segment of the log needs room as well
                connection.execute("SELECT pg_switch_wal(), txid_current()")
                stage.wait(0.25)
        stage.wait(1)
    finally:
        disk.free()
    if cluster.primary.process.poll() is not None:
        stage.note("PostgreSQL ended, and was started again by its supervisor")
        cluster.primary.restart()
    stage.ends()


@SCENARIOS.add(Promise(recovers_within=0, may_refuse=False))
def slow_database(stage: Stage) -> None:
    """Each message between nodes and database takes 0.1 s, for 5 s"""
    _delay(stage, 0.1)


# Each login that is sent is stored, and its answer comes too late.
@SCENARIOS.add(Promise(recovers_within=2, never_received=GIVEN_UP_AT_MOST))
def too_slow_database(stage: Stage) -> None:
    """Each message between nodes and database takes 1 s, for 5 s"""
    _delay(stage, 1)


def _delay(stage: Stage, seconds: float) -> None:
    """In each direction."""
    stage.begins()
    for node in stage.cluster.nodes:
        node.door.delay_seconds = seconds
    stage.wait(5)
    for node in stage.cluster.nodes:
        node.door.delay_seconds = 0
    stage.ends()


# Commits wait for the standby after they are in the log: what gave up is stored.
@SCENARIOS.add(Promise(recovers_within=2, never_received=GIVEN_UP_AT_MOST))
def lost_standby(stage: Stage) -> None:
    """The synchronous standby is lost; after 6 s the runbook's command is given"""
    cluster = stage.cluster
    stage.begins()
    cluster.standby.crash()
    stage.wait(6)
    cluster.primary.set("synchronous_standby_names", "")
    stage.ends()
    stage.afterwards.callback(cluster.add_standby)
    stage.afterwards.callback(cluster.standby.stop)


@SCENARIOS.add(Promise(recovers_within=2, never_received=UNDER_WAY))
def failover(stage: Stage) -> None:
    """The primary falls silent with its connections open; after 3 s the standby is promoted"""
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
    while not all(is_ready(node.service.url) for node in stage.cluster.nodes):
        if time.monotonic() > began + 30:
            stage.note("/health/ready is still 503 after 30 s")
            return
        stage.wait(0.2)
    stage.note(f"/health/ready of both nodes is 200 again after {time.monotonic() - began:.1f} s")
