"""The paths of the sandbox, only in the test environment."""

from django.conf import settings
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt

from tokens.http import imported_on_first_use

urlpatterns: list[URLPattern] = []
if settings.ENVIRONMENT == "test":
    urlpatterns += [
        path("sandbox.json", imported_on_first_use("identity.sandbox.listing.sandbox_json")),
        path("sandbox/portal", imported_on_first_use("identity.sandbox.portal.portal")),
        path("sandbox/reset", csrf_exempt(imported_on_first_use("identity.sandbox.listing.reset"))),
    ]
