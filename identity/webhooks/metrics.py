"""Webhooks for Prometheus, read from the database at each scrape: deliverers serve no metrics."""

from collections.abc import Iterator
from datetime import UTC, datetime

from django.db import DatabaseError
from django.db.models import Count, Min, Sum
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from identity.webhooks.models import WebhookDelivery, WebhookEndpoint


class WebhookMetrics(Collector):
    """Attempts by outcome, and what waits; of enabled endpoints only what waits."""

    def collect(self) -> Iterator[Metric]:
        at = datetime.now(UTC)
        try:
            totals = WebhookEndpoint.objects.aggregate(
                delivered=Sum("delivered", default=0),
                failed_attempt=Sum("failed_attempts", default=0),
                given_up=Sum("given_up", default=0),
            )
            waiting = WebhookDelivery.objects.filter(
                state=WebhookDelivery.PENDING, endpoint__is_active=True
            ).aggregate(count=Count("pk"), oldest=Min("created_at"))
        except DatabaseError:
            return  # a gap in the series shows it
        deliveries = CounterMetricFamily(
            "webhook_deliveries",
            "Messages that were delivered or given up, and attempts that failed.",
            labels=["outcome"],
        )
        for outcome, count in totals.items():
            deliveries.add_metric([outcome], count)
        yield deliveries
        yield GaugeMetricFamily(
            "webhook_waiting", "Messages that have yet to be delivered.", waiting["count"]
        )
        oldest = waiting["oldest"]
        yield GaugeMetricFamily(
            "webhook_oldest_waiting_seconds",
            "Seconds for which the oldest of them waits; 0: none does.",
            0.0 if oldest is None else (at - oldest).total_seconds(),
        )
