"""Every path of the service on one screen. `SERVE` decides which of them a process answers."""

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from identity import health
from identity.staff.accounts.views import enter
from tokens.urls import urlpatterns as protocol

Paths = list[URLPattern | URLResolver]

health_paths: list[URLPattern] = [
    path("health/live", health.live),
    path("health/ready", health.ready),
    path("metrics", health.metrics),
]
# What goes round the staff's middleware: exact paths, without a part that varies.
public = health_paths if settings.SERVE == "staff" else [*protocol, *health_paths]
staff: Paths = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="start"),
    path("language/", set_language, name="set_language"),
    path("signin/", include("identity.staff.accounts.urls")),
    # The admin's own pages for this know neither the second factor nor the lock-out.
    path("admin/login/", enter),
    path("admin/logout/", RedirectView.as_view(pattern_name="account_logout")),
    path("admin/password_change/", RedirectView.as_view(pattern_name="account_change_password")),
    path("admin/", admin.site.urls),
]
urlpatterns: Paths = [*public] if settings.SERVE == "login" else [*public, *staff]
handler404 = "identity.not_found.not_found"
