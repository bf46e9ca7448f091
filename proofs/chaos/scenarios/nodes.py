"""Processes and nodes that die, are restarted one after the other, upgraded, or meet a crowd."""

import asyncio
import os
import signal
from collections import Counter
from functools import partial
from urllib.parse import urlencode

import psycopg

from proofs.chaos.load import rush
from proofs.chaos.promises import Promise
from proofs.chaos.scenarios.scenario import Scenario, Scenarios, Stage
from tests.servers.processes import children_of
from tests.support.erp import FORM, PATH, Erp

SCENARIOS = Scenarios()

_ADDED = ("system_users", "client_usage", "login_events")
_CROWD_AT_MOST_SECONDS = 20.0
_LOCK_TIMEOUT = "SET lock_timeout = '500ms'"


@SCENARIOS.add(Promise(recovers_within=1.5, never_received=2))
def kill_worker(stage: Stage) -> None:
    """`kill -9` of one process of a node"""
    victim = children_of(stage.cluster.nodes[0].service.pid)[0]
    stage.begins()
    os.kill(victim, signal.SIGKILL)
    stage.ends()
    stage.wait(2)


@SCENARIOS.add(Promise(recovers_within=1, never_received=4))
def kill_node(stage: Stage) -> None:
    """`kill -9` of a whole node; its supervisor starts it again after 2 s"""
    node = stage.cluster.nodes[0]
    stage.begins()
    node.kill()
    stage.ends()
    stage.wait(2)
    node.start()  # the supervisor
    stage.wait(1)


# The proxy waits 5 s for an answer; what the node had accepted it stores when it goes on.
@SCENARIOS.add(Promise(recovers_within=5, answers_within=6, never_received=16))
def hang_node(stage: Stage) -> None:
    """A whole node is stopped for 4 s (SIGSTOP, SIGCONT)"""
    group = stage.cluster.nodes[0].service.pid
    stage.begins()
    os.killpg(group, signal.SIGSTOP)
    try:
        stage.wait(4)
    finally:
        os.killpg(group, signal.SIGCONT)
    stage.ends()


@SCENARIOS.add(Promise(recovers_within=0, may_refuse=False))
def rolling_upgrade(stage: Stage) -> None:
    """A column added to three tables of the login, then both nodes restarted in turn (SIGTERM)

    Migrate first, then replace the nodes, as docs/scaling.md says.
    """
    stage.begins()
    with stage.cluster.connect() as connection:
        connection.execute(_LOCK_TIMEOUT)
        for table in _ADDED:
            _alter(stage, connection, f"ALTER TABLE {table} ADD drill text NOT NULL DEFAULT ''")
    for node in stage.cluster.nodes:
        code = node.stop_in_order()
        if code:
            raise AssertionError(f"a node that was stopped ended with {code}")
        node.start()
    stage.ends()
    stage.afterwards.callback(_remove_column, stage)


def _remove_column(stage: Stage) -> None:
    with stage.cluster.connect() as connection:
        for table in _ADDED:
            connection.execute(f"ALTER TABLE {table} DROP drill".encode())


def _alter(stage: Stage, connection: psycopg.Connection[object], sql: str) -> None:
    """Tried again until the lock is there: a waiting ALTER would make all logins wait behind it."""
    for _ in range(20):
        try:
            connection.execute(sql.encode())
        except psycopg.errors.LockNotAvailable:
            stage.wait(0.1)
        else:
            return
    raise AssertionError(f"no lock for: {sql}")


def _rush(stage: Stage, count: int) -> None:
    erps = stage.cluster.population.crowd
    requests = [_request(erps[number % len(erps)]) for number in range(count)]
    port = int(stage.cluster.nodes[0].service.environment["PORT"])
    stage.begins()
    answers = asyncio.run(rush(port, requests, "crowd", _CROWD_AT_MOST_SECONDS))
    stage.ends()
    stage.load.answers += answers
    statuses = Counter(answer.status for answer in answers)
    accepted = [answer.seconds for answer in answers if answer.token]
    slowest = max(accepted, default=0)
    stage.note(
        f"of the crowd {statuses[200]} got a token, the slowest after {slowest:.1f} s,"
        f" and {statuses[503]} a 503; all within {stage.ended_at - stage.began_at:.1f} s"
    )
    if statuses[200] < count // 5:
        raise AssertionError("a node refuses a crowd that it can serve")


def _request(erp: Erp) -> bytes:
    body = urlencode(erp.form)
    return (
        f"POST {PATH} HTTP/1.1\r\nHost: id.example.org\r\nConnection: close\r\n"
        f"X-Forwarded-Proto: https\r\nX-Forwarded-For: 127.0.0.3\r\n"
        f"Content-Type: {FORM}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


SCENARIOS += (
    Scenario(
        f"crowd-{count}",
        f"{count:,} connections at once to one node, each with a login",
        partial(_rush, count=count),
        # One batch of each process: what took longer than its second is stored all the same.
        Promise(recovers_within=1, answers_within=seconds, never_received=2 * 64),
    )
    for count, seconds in ((500, 4.0), (5000, 12.0))
)
