"""PostgreSQL dies, hangs, is full, or has no connection left."""

import contextlib
import time

import psycopg

from proofs.chaos.cluster import Cluster
from proofs.chaos.promises import Promise
from proofs.chaos.scenarios.scenario import Scenario, Stage
from tests.servers.processes import NotAvailable

# What the lanes of four processes may have under way when PostgreSQL stops: one login each, because
# a caller waits for its answer before it logs in again. See docs/decisions.md, "Deadlines".
UNDER_WAY = 8


def _crash(stage: Stage) -> None:
    stage.begins()
    stage.cluster.primary.crash()
    stage.wait(2)
    stage.cluster.primary.restart()  # the supervisor
    stage.ends()


def _hang(stage: Stage) -> None:
    stage.begins()
    stage.cluster.primary.hang()
    stage.wait(5)
    stage.cluster.primary.go_on()
    stage.ends()


def _no_connections(stage: Stage) -> None:
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


def _fill_disk(stage: Stage) -> None:
    cluster = stage.cluster
    disk = cluster.disk
    if disk is None:
        raise NotAvailable(cluster.no_disk)
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


SCENARIOS = (
    Scenario(
        "crash-database",
        "`kill -9` of the whole PostgreSQL; started again after 2 s",
        _crash,
        Promise(recovers_within=3, never_received=UNDER_WAY),
    ),
    Scenario(
        "hang-database",
        "PostgreSQL hangs for 5 s (SIGSTOP, SIGCONT)",
        _hang,
        Promise(recovers_within=2, never_received=UNDER_WAY),
    ),
    Scenario(
        "no-connections",
        "every connection of PostgreSQL is taken for 5 s, and those of the nodes are ended",
        _no_connections,
        Promise(recovers_within=2, never_received=UNDER_WAY),
    ),
    Scenario(
        "full-disk",
        "the disk of PostgreSQL is full, data and write-ahead log, for some seconds",
        _fill_disk,
        Promise(recovers_within=3, never_received=UNDER_WAY),
    ),
)
