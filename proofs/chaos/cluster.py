"""What the drill breaks: two login nodes behind nginx, and PostgreSQL with a synchronous standby.

The proxies of the nodes also stand for the address that moves to the standby when that is promoted.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from proofs.chaos.callers import register
from proofs.chaos.site import DATABASE, Site, start_nodes
from tests.servers.postgres import Postgres, postgres_user, start_postgres, start_standby
from tests.servers.processes import NotAvailable, new_folder, until
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
    """One primary and its standby."""

    primary: Postgres
    standby: Postgres
    disk: SmallDisk | None  # of the first primary
    no_disk: str  # why there is none

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
        folder = new_folder("chaos")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        disk, no_disk = _small_disk()
        if disk:
            stack.callback(disk.stop)
        primary = start_postgres(disk.folder if disk else None, **SETTINGS)
        stack.callback(primary.stop)
        primary.execute(f"CREATE DATABASE {DATABASE}")
        url = f"postgresql://postgres@127.0.0.1:{{port}}/{DATABASE}"
        nodes, balancer = start_nodes(stack, folder, primary.port, url)
        population = register(nodes[0].service)
        standby = start_standby(primary, **SETTINGS)
        cluster = Cluster(folder, nodes, balancer, population, primary, standby, disk, no_disk)
        stack.callback(_stop_databases, cluster)
        cluster.follow_synchronously()
        yield cluster


def _small_disk() -> tuple[SmallDisk | None, str]:
    try:
        return mount_small_disk("small-disk", DISK_MEGABYTES, postgres_user()), ""
    except NotAvailable as reason:
        return None, str(reason)


def _stop_databases(cluster: Cluster) -> None:
    cluster.primary.stop()
    cluster.standby.stop()
