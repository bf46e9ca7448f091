"""What the drill breaks: PostgreSQL with its standby, or Patroni's three members, behind nodes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg

from proofs.chaos.site import DATABASE, Site, start_nodes
from tests.servers.patroni import Etcd, Member, start_etcd, start_haproxy, start_member
from tests.servers.postgres import Postgres, postgres_user, start_postgres, start_standby
from tests.servers.processes import NotAvailable, Program, until
from tests.servers.small_disk import SmallDisk, mount_small_disk

SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_connections": "80",
    "max_wal_size": "96MB",
    # What the standby has not read yet must be there after a crash: the drill has no slot for it.
    "wal_keep_size": "48MB",
    "min_wal_size": "32MB",
    # Logins wait for the standby: 5 s, the default, would be the pause after each restart.
    "wal_retrieve_retry_interval": "200ms",
}
DISK_MEGABYTES = 400


@dataclass
class Cluster(Site):
    primary: Postgres
    standby: Postgres
    disk: SmallDisk | NotAvailable  # of the first primary, or why there is none

    @property
    def database_url(self) -> str:
        return self.primary.url(DATABASE)

    def follow_synchronously(self) -> None:
        """Each commit waits for the standby from now on."""
        self.primary.set("synchronous_standby_names", "*")
        until(self.is_followed)

    def is_followed(self) -> bool:
        with self.connect() as connection:
            rows = connection.execute(
                "SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'"
            ).fetchall()
        return bool(rows)

    def promote_standby(self) -> Postgres:
        """The standby is the primary, and the nodes' new connections lead to it.

        Returns the former primary. No standby follows the new one: see `add_standby`.
        """
        former, self.primary = self.primary, self.standby
        self.primary.execute("SELECT pg_promote()")
        for node in self.nodes:
            node.door.redirect(self.primary.port)
        return former

    def add_standby(self) -> None:
        """A new standby, instead of the one that was promoted or lost."""
        self.standby = start_standby(self.primary, **SETTINGS)
        self.follow_synchronously()


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Raises NotAvailable where PostgreSQL or nginx is missing."""
    with ExitStack() as stack:
        disk: SmallDisk | NotAvailable
        try:
            disk = mount_small_disk("small-disk", DISK_MEGABYTES, postgres_user())
            stack.callback(disk.stop)
        except NotAvailable as reason:
            disk = reason
        on_it = disk.folder if isinstance(disk, SmallDisk) else None
        primary = start_postgres(on_it, **SETTINGS)
        stack.callback(primary.stop)
        primary.execute(f"CREATE DATABASE {DATABASE}")
        url = f"postgresql://postgres@127.0.0.1:{{port}}/{DATABASE}"
        started = start_nodes(stack, primary.port, url)
        standby = start_standby(primary, **SETTINGS)
        cluster = Cluster(*started, primary, standby, disk)
        try:
            cluster.follow_synchronously()
            yield cluster
        finally:  # they may be others by now
            cluster.primary.stop()
            cluster.standby.stop()


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
        started = start_nodes(stack, haproxy.port, _URL + _OPTIONS)
        site = PatroniSite(*started, members, etcd, haproxy)
        site.wait_until_whole()
        yield site
