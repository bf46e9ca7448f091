"""The public paths: protocol, pages for developers, health, metrics. `SERVE` decides which.

`identity.middleware` finds their views by itself, most by the whole path. Where staff pages are
served, `identity.staff.urls` is the root and includes these.
"""

from django.conf import settings
from django.urls import URLPattern, path
from prometheus_client.registry import Collector

from identity import health
from identity.developers.urls import urlpatterns as developers
from identity.sandbox.urls import urlpatterns as sandbox
from tokens.urls import urlpatterns as protocol

metrics_of_staff: list[Collector] = []
management: list[URLPattern] = []
if settings.SERVE != "login":
    from identity.api.urls import urlpatterns as management
    from identity.webhooks.metrics import WebhookMetrics

    metrics_of_staff = [WebhookMetrics()]
health_paths: list[URLPattern] = [
    path("health", health.status),
    path("health/live", health.live),
    path("health/ready", health.ready),
    path("metrics", health.metrics(*metrics_of_staff)),
]
urlpatterns = [
    *(() if settings.SERVE == "staff" else (*protocol, *developers, *sandbox)),
    *health_paths,
    *management,
]
handler404 = "identity.errors.not_found"
handler400 = "identity.errors.bad_request"
