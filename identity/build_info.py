"""The metric `identity_build_info`: which version a node runs, always 1."""

from collections.abc import Iterator

from django.conf import settings
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class BuildInfo(Collector):
    """One line; its labels are the answer."""

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily(
            "identity_build_info", "The version of this node.", labels=["version", "commit"]
        )
        info.add_metric([settings.VERSION, settings.COMMIT], 1)
        yield info
