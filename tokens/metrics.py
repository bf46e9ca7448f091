"""Logins and other requests by outcome, and the age of the signing key (contract 6)."""

import logging
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from django.db import DatabaseError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from tokens.keys.ring import NoUsableKey
from tokens.keys.signer import current_key_ring
from tokens.rate_limits.throttle import ThrottleCause
from tokens.refusals.table import REFUSALS

logger = logging.getLogger("tokens.metrics")

ISSUED, INACTIVE = "issued", "inactive"

# See identity.metrics_files; prometheus_client, too, reads this variable when it is imported.
_IS_SHARED = "PROMETHEUS_MULTIPROC_DIR" in os.environ
_OUTCOMES = (ISSUED, *REFUSALS)
_BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

# What this process counts; where there are more processes, each writes its own files.
COUNTED = CollectorRegistry()

_counter = partial(Counter, registry=COUNTED)
_logins = _counter(
    "logins", "Logins by outcome: issued, or the reason of the refusal.", ["outcome"]
)
_throttled = _counter(
    "throttled_logins", "Logins refused by a limit: of what there was too much.", ["cause"]
)
_seconds = Histogram(
    "login_seconds", "Seconds from request to answer.", buckets=_BUCKETS, registry=COUNTED
)
introspections = _counter(
    "introspections",
    "Introspections by outcome: active, inactive, or the reason of the refusal.",
    ["outcome"],
)
revocations = _counter(
    "revocations",
    "Revocations by outcome: revoked, nothing_to_revoke, or the reason of the refusal.",
    ["outcome"],
)
throttled_calls = _counter(
    "throttled_api_calls", "Requests at /api/v1/ refused by the limit of their access token."
)
waiting_calls = Gauge(
    "waiting_calls",
    "Logins and other requests that wait to be sent to the database, by what they ask for.",
    ["lane"],
    multiprocess_mode="livesum",
    registry=COUNTED,
)
# Made here, so that the first scrape shows every outcome, at zero, and no login looks one up.
_counters = {str(outcome): _logins.labels(str(outcome)) for outcome in _OUTCOMES}
_causes = {cause: _throttled.labels(str(cause)) for cause in ThrottleCause}


def count_login(outcome: str, seconds: float, throttled_for: ThrottleCause | None = None) -> None:
    """Counts an answered login: ISSUED or why it was refused, and of what there was too much."""
    _counters[outcome].inc()
    _seconds.observe(seconds)
    if throttled_for is not None:
        _causes[throttled_for].inc()


def exposition(more: Iterable[Collector] = ()) -> bytes:
    """The metrics of all processes of this service, and `more`, in the Prometheus text format."""
    registry = CollectorRegistry()
    for collector in (_counted_by_all(), _SigningKey(), *more):
        registry.register(collector)
    return generate_latest(registry)


def issued_by_this_node() -> float:
    """The tokens that all processes of this node have issued."""
    samples = (sample for metric in _counted_by_all().collect() for sample in metric.samples)
    issued = {"outcome": ISSUED}
    return sum(s.value for s in samples if s.name == "logins_total" and s.labels == issued)


def _counted_by_all() -> Collector:
    return _AllProcesses() if _IS_SHARED else COUNTED


class _AllProcesses(Collector):
    """Of all files that can be read: one that a crash has cut off hides no other."""

    def collect(self) -> Iterator[Metric]:
        files = [str(file) for file in Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).glob("*.db")]
        try:
            yield from MultiProcessCollector.merge(files)
        except Exception:  # noqa: BLE001 - as of one file
            whole = [file for file in files if _is_whole(file)]
            logger.warning("counters not read", extra={"files": sorted({*files} - {*whole})})
            yield from MultiProcessCollector.merge(whole)


def _is_whole(file: str) -> bool:
    try:
        MultiProcessCollector.merge([file])
    except Exception:  # noqa: BLE001 - whatever is wrong with it
        return False
    return True


class _SigningKey(Collector):
    """Read at each scrape: it is the same for all processes."""

    def collect(self) -> Iterator[Metric]:
        at = datetime.now(UTC)
        try:
            key = current_key_ring(at).signer(at)
        except (DatabaseError, NoUsableKey):
            return  # a gap in the series shows it, and /health/ready gives the reason
        yield GaugeMetricFamily(
            "signing_key_age_seconds",
            "Seconds since the current signing key began to sign: rotate it now and then.",
            (at - key.signs_from).total_seconds(),
        )
