"""How many logins, how they end, how long they take: for Prometheus (contract 6).

The only place where a throttled login leaves a trace. One login costs 3 µs here.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime

from django.db import DatabaseError
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from tokens.keys.ring import NoUsableKey
from tokens.keys.signer import current_key_ring
from tokens.refusals.table import REFUSALS

ISSUED = "issued"

# With other processes, see identity.metrics_files; prometheus_client looks when imported, too.
_COUNTS_TOGETHER = "PROMETHEUS_MULTIPROC_DIR" in os.environ
_OUTCOMES = (ISSUED, *REFUSALS)
_BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

_logins = Counter(
    "logins", "Logins by outcome: issued, or the reason of the refusal.", ["outcome"], registry=None
)
_seconds = Histogram(
    "login_seconds", "Seconds from request to answer.", buckets=_BUCKETS, registry=None
)
# Made ahead: each outcome is there from the first scrape, at zero, and none is looked up later.
_counters = {str(outcome): _logins.labels(str(outcome)) for outcome in _OUTCOMES}


def count_login(outcome: str, seconds: float) -> None:
    """Counts one answered login: ISSUED, or its reason, and how long it took."""
    _counters[outcome].inc()
    _seconds.observe(seconds)


def exposition() -> bytes:
    """All metrics of the service, of all its processes, in the Prometheus text format."""
    registry = CollectorRegistry()
    if _COUNTS_TOGETHER:
        MultiProcessCollector(registry)
    else:
        registry.register(_logins)
        registry.register(_seconds)
    registry.register(_SigningKey())
    return generate_latest(registry)


class _SigningKey(Collector):
    """Read when asked, as it is the same for all processes."""

    def collect(self) -> Iterator[Metric]:
        at = datetime.now(UTC)
        try:
            key = current_key_ring(at).signer(at)
        except (DatabaseError, NoUsableKey):
            return  # a gap in the series says so, and /health/ready says why
        yield GaugeMetricFamily(
            "signing_key_age_seconds",
            "Seconds since the present signing key began to sign: rotate it now and then.",
            (at - key.signs_from).total_seconds(),
        )
