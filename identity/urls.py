"""The public paths: protocol, pages for developers, health, metrics. `SERVE` decides which.

`identity.middleware` and `identity.asgi` find their views by `views_of`. Where staff pages are
served, `identity.staff.urls` is the root and includes these.
"""

from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpResponseBase
from django.urls import URLPattern, path
from prometheus_client.registry import Collector

from identity import health
from identity.developers.urls import urlpatterns as developers
from tokens.urls import urlpatterns as protocol

View = Callable[..., HttpResponseBase]

collectors: list[Collector] = []
management: list[URLPattern] = []
confirmation: list[URLPattern] = []
if settings.SERVE != "login":
    from identity.api.urls import urlpatterns as management
    from identity.confirm.page import confirm
    from identity.webhooks.metrics import WebhookMetrics

    collectors.append(WebhookMetrics())
    # Not under SERVE=login: the proxy leads this path of the public address to nodes of the staff.
    below = f"{urlsplit(settings.CONFIRM_URL).path}/"[1:]
    confirmation.append(path(f"{below}<uuid:id>", confirm))
live = path("health/live", health.live)
health_paths: list[URLPattern] = [
    path("health", health.status),
    live,
    path("health/ready", health.ready),
    path("metrics", health.metrics(*collectors)),
]
urlpatterns = [
    *(() if settings.SERVE == "staff" else (*protocol, *developers)),
    *health_paths,
    *management,
    *confirmation,
]


def views_of(paths: Sequence[URLPattern]) -> Callable[[str], View | None]:
    """Finds the view of a path among these, most of them by the whole path."""
    views = {f"/{path.pattern}": path.callback for path in paths}
    variable = [path for path in paths if "<" in str(path.pattern)]

    def view_of(path_info: str) -> View | None:
        if path_info in views:
            return views[path_info]
        matches = (path.resolve(path_info.removeprefix("/")) for path in variable)
        return next((partial(match.func, **match.kwargs) for match in matches if match), None)

    return view_of


handler404 = "identity.errors.not_found"
handler400 = "identity.errors.bad_request"
