"""Every path of the service on one screen. `SERVE` decides which of them a process answers."""

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from identity import health

public: list[URLPattern | URLResolver] = [
    path("", include("tokens.urls")),
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
    "staff": [*staff, *public[1:]],
    "both": [*public, *staff],
}[settings.SERVE]
handler404 = "identity.middleware.not_found"
