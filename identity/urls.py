"""Every path of the service on one screen. `SERVE` decides which of them a process answers."""

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView

from identity import health
from tokens.urls import urlpatterns as protocol

public: list[URLPattern | URLResolver] = [
    *protocol,  # the login first: one comparison finds it
    path("health/live", health.live),
    path("health/ready", health.ready),
    path("metrics", health.metrics),
]
staff: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="start"),
    path("admin/", admin.site.urls),
]
urlpatterns = {
    "login": public,
    "staff": [*staff, *public[len(protocol) :]],
    "both": [*public, *staff],
}[settings.SERVE]
handler404 = "identity.middleware.not_found"
