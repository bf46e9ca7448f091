"""The paths of the sandbox, only in the test environment; the client check is served in both."""

from django.conf import settings
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt

from identity.sandbox.download import DOWNLOAD_PATH, client_check
from tokens.http import imported_on_first_use

_sandbox: list[URLPattern] = [
    path("sandbox.json", imported_on_first_use("identity.sandbox.listing.sandbox_json")),
    path("sandbox/reset", csrf_exempt(imported_on_first_use("identity.sandbox.listing.reset"))),
]
urlpatterns: list[URLPattern] = [
    path(DOWNLOAD_PATH.removeprefix("/"), client_check),
    *(_sandbox if settings.ENVIRONMENT == "test" else ()),
]
