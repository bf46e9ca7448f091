"""Patroni's leader dies, falls silent, comes back, is switched; etcd and a standby are lost."""

from collections.abc import Callable

import psycopg

from proofs.chaos.callers import Kind
from proofs.chaos.cluster import PatroniSite
from proofs.chaos.promises import Promise
from proofs.chaos.scenarios.database import GIVEN_UP_AT_MOST
from proofs.chaos.scenarios.scenario import Scenarios, Stage
from proofs.chaos.site import DATABASE
from tests.servers.patroni import Member

# What all callers have under way: each waits for an answer before the next login.
UNDER_WAY = 12
# What deploy/patroni/patroni.yml sets.
TTL_SECONDS, LOOP_SECONDS = 20.0, 2.0
_STEADY_SECONDS, _STEADY_AT_MOST = 1.5, 60.0

PATRONI = Scenarios[PatroniSite]()


def _begin(stage: Stage[PatroniSite]) -> None:
    stage.afterwards.callback(stage.cluster.repair)
    stage.begins()


def _wait_until_served(stage: Stage[PatroniSite]) -> None:
    stage.load.wait_until_steady(_STEADY_SECONDS, _STEADY_AT_MOST)


@PATRONI.add(Promise(recovers_within=8, never_received=UNDER_WAY))
def kill_postgresql(stage: Stage[PatroniSite]) -> None:
    """`kill -9` of the leader's PostgreSQL"""
    _replace(stage, Member.kill_postgresql)


@PATRONI.add(Promise(recovers_within=TTL_SECONDS + 5, never_received=UNDER_WAY))
def kill_leader(stage: Stage[PatroniSite]) -> None:
    """`kill -9` of the leader's Patroni and PostgreSQL, as when its machine fails"""
    _replace(stage, Member.kill)


def _replace(stage: Stage[PatroniSite], kill: Callable[[Member], None]) -> None:
    leader = stage.cluster.leader
    _begin(stage)
    kill(leader)
    stage.ends()
    successor = stage.cluster.wait_for_leader(other_than=leader)
    _wait_until_served(stage)
    stage.note(f"{successor.name} instead of {leader.name}")


# Commits wait for the standby after they are in the log: what gave up is stored.
@PATRONI.add(Promise(recovers_within=12, never_received=GIVEN_UP_AT_MOST))
def hang_standby(stage: Stage[PatroniSite]) -> None:
    """The synchronous standby hangs (SIGSTOP)"""
    standby = stage.cluster.synchronous_standby()
    _begin(stage)
    standby.hang()
    stage.ends()
    _wait_until_served(stage)
    stage.note(f"{stage.cluster.synchronous_standby().name} is synchronous instead")


@PATRONI.add(Promise(recovers_within=0, may_refuse=False))
def lose_etcd(stage: Stage[PatroniSite]) -> None:
    """Etcd is killed, and started again after the time of the leader has passed"""
    leader = stage.cluster.leader
    _begin(stage)
    stage.cluster.etcd.kill()
    stage.wait(TTL_SECONDS + 3 * LOOP_SECONDS)
    stage.cluster.etcd.start()
    stage.ends()
    if not leader.is_leader:
        raise AssertionError("another member leads")


@PATRONI.add(Promise(recovers_within=5, never_received=UNDER_WAY))
def switch_over(stage: Stage[PatroniSite]) -> None:
    """`patronictl switchover` to the synchronous standby"""
    leader, standby = stage.cluster.leader, stage.cluster.synchronous_standby()
    _begin(stage)
    leader.control("switchover", "--leader", leader.name, "--candidate", standby.name, "--force")
    stage.ends()
    if not standby.is_leader:
        raise AssertionError(f"{standby.name} does not lead")
    _wait_until_served(stage)


@PATRONI.add(Promise(recovers_within=2, never_received=UNDER_WAY))
def hang_leader(stage: Stage[PatroniSite]) -> None:
    """The leader hangs until another one leads; then its PostgreSQL goes on, before its Patroni

    Two think that they lead. The former Patroni, which would stop its PostgreSQL, goes on last, and
    one node still finds the way to it.
    """
    former, node = stage.cluster.leader, stage.cluster.nodes[0]
    _begin(stage)
    former.hang()
    stage.cluster.wait_for_leader(other_than=former)
    _wait_until_served(stage)
    stage.note(f"honest logins again {_seconds_refused(stage):.1f} s after it fell silent")
    former.let_postgresql_go_on()
    node.door.redirect(former.port)
    node.door.strand()
    _log_in_at_former_leader(stage, former)
    node.door.redirect(stage.cluster.haproxy.port)
    node.door.strand()
    former.go_on()
    if former.is_leader:
        raise AssertionError("Patroni of the former leader takes it for the leader")
    stage.ends()
    _wait_until_served(stage)


def _log_in_at_former_leader(stage: Stage[PatroniSite], former: Member) -> None:
    """No caller gets a token: no standby confirms what it stores."""
    honest = [one for one in stage.cluster.population.callers if one.kind is Kind.HONEST]
    for caller in honest[:4]:
        if stage.probe(stage.cluster.nodes[0], caller).token:
            raise AssertionError("a token whose record only the former leader has")
    with psycopg.connect(former.url(DATABASE), autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FILTER (WHERE wait_event = 'SyncRep') FROM pg_stat_activity"
            " WHERE NOT pg_is_in_recovery() AND usename = 'identity'"
        ).fetchone()
    if not row or not row[0]:
        raise AssertionError("no login was under way at the former leader")
    stage.note(f"{row[0]} sessions of one node waited at the former leader until their end")


def _seconds_refused(stage: Stage[PatroniSite]) -> float:
    answers = [a for a in tuple(stage.load.answers) if a.caller in stage.load.honest]
    refused = (answer.answered_at for answer in answers if not answer.token)
    return max(refused, default=stage.began_at) - stage.began_at
