"""What Prometheus sees of a node itself: its version, and what its processes use (contract 6)."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from prometheus_client import ProcessCollector
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from tokens.status_lists.offline_blocks import offline_blocks
from tokens.status_lists.publication import status_lists


class Build(Collector):
    """`identity_build_info`, whose value is 1."""

    def collect(self) -> Iterator[Metric]:
        build = {"version": settings.VERSION, "commit": settings.COMMIT}
        yield InfoMetricFamily("identity_build", "The version of this node.", build)


class StatusListAge(Collector):
    """How old the facts are that this process publishes; absent where it publishes none."""

    def collect(self) -> Iterator[Metric]:
        age = status_lists().age_seconds()
        if math.isfinite(age):
            text = "Seconds since the published status lists were read from the database."
            yield GaugeMetricFamily("status_list_age_seconds", text, age)
            text = "Clients that files of block_offline block, until the registry does."
            count = len(offline_blocks().since)
            yield GaugeMetricFamily("offline_blocked_clients", text, count)


class Processes(Collector):
    """CPU time, memory and files of each process of this node, by its `pid`."""

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for pid in _of_this_node():
            for metric in ProcessCollector(pid=lambda pid=pid: pid, registry=None).collect():  # type: ignore[misc]
                family = found.setdefault(metric.name, metric)
                samples = [s._replace(labels={"pid": str(pid)}) for s in metric.samples]
                family.samples = samples if family is metric else [*family.samples, *samples]
        yield from found.values()


def _of_this_node() -> list[int]:
    """The master and its processes; only this one where it is not part of a server."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return [os.getpid()]
    master = os.getppid()
    children = Path(f"/proc/{master}/task/{master}/children").read_text(encoding="ascii")
    return [master, *map(int, children.split())]
