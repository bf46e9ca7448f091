"""The drill's database with Patroni: three members, etcd, and HAProxy in front of the leader."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg

from proofs.chaos.callers import register
from proofs.chaos.site import DATABASE, Site, start_nodes
from tests.servers.patroni import Etcd, Member, start_etcd, start_haproxy, start_member
from tests.servers.processes import Program, new_folder, until

NAMES = ("db-1", "db-2", "db-3")
_PASSWORD = "only-for-tests"
_URL = f"postgresql://identity:{_PASSWORD}@127.0.0.1:{{port}}/{DATABASE}"
_OPTIONS = "?target_session_attrs=read-write"
_WHOLE_WITHIN_SECONDS = 60.0


@dataclass
class PatroniSite(Site):
    """Its leader changes by itself."""

    members: list[Member]
    etcd: Etcd
    haproxy: Program

    @property
    def leader(self) -> Member:
        """Raises psycopg.OperationalError while there is none."""
        for member in self.members:
            if member.is_leader:
                return member
        raise psycopg.OperationalError("no member leads")

    @property
    def database_url(self) -> str:
        return self.leader.url(DATABASE)

    def synchronous_standby(self) -> Member:
        """The one that each commit waits for."""
        with self.connect() as connection:
            row = connection.execute(
                "SELECT application_name FROM pg_stat_replication WHERE sync_state = 'sync'"
            ).fetchone()
        assert row is not None, "no standby is synchronous"
        return next(member for member in self.members if member.name == row[0])

    def wait_for_leader(self, other_than: Member) -> Member:
        others = [member for member in self.members if member is not other_than]
        until(lambda: any(member.is_leader for member in others), _WHOLE_WITHIN_SECONDS)
        return next(member for member in others if member.is_leader)

    def wait_until_whole(self) -> None:
        """Until one member leads and both others follow it, one of them synchronously."""
        until(self._is_whole, _WHOLE_WITHIN_SECONDS)

    def _is_whole(self) -> bool:
        if sum(member.is_leader for member in self.members) != 1:
            return False
        try:
            with self.connect() as connection:
                rows = connection.execute(
                    "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
                ).fetchall()
        except psycopg.OperationalError:
            return False
        return sorted(row[0] for row in rows) == ["async", "sync"]

    def repair(self) -> None:
        """Whatever a scenario has broken: every program runs, and each node finds the leader."""
        for node in self.nodes:
            node.door.redirect(self.haproxy.port)
        self.etcd.start()
        for member in self.members:
            member.go_on()
            member.start()
        self.wait_until_whole()


@contextmanager
def running_patroni_site() -> Iterator[PatroniSite]:
    """Raises NotAvailable where one of its programs is missing."""
    with ExitStack() as stack:
        folder = new_folder("chaos")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        etcd = start_etcd()
        stack.callback(etcd.stop)
        members = []
        for name in NAMES:  # the first one makes the database, the others copy it
            members.append(start_member(name, etcd.port))
            stack.callback(members[-1].stop)
        haproxy = start_haproxy([(member.port, member.rest_port) for member in members])
        stack.callback(haproxy.stop)
        with psycopg.connect(members[0].url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE identity LOGIN PASSWORD '{_PASSWORD}'")
            connection.execute(f"CREATE DATABASE {DATABASE} OWNER identity")
        nodes, balancer = start_nodes(stack, folder, haproxy.port, _URL + _OPTIONS)
        population = register(nodes[0].service)
        site = PatroniSite(folder, nodes, balancer, population, members, etcd, haproxy)
        site.wait_until_whole()
        yield site
