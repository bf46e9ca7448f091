"""The paths of the sandbox, in the test environment alone; the client check is served in both."""

from django.conf import settings
from django.urls import URLPattern, path

from identity.sandbox.download import DOWNLOAD_PATH, client_check
from identity.sandbox.reset import RESET_PATH, reset
from tokens.http import imported_on_first_use

_PAGES = "identity.sandbox.pages"
_LANGUAGES = {"": "", "en/": "en", "ms/": "ms"}
_sandbox: list[URLPattern] = [
    *(
        path(f"{prefix}sandbox", imported_on_first_use(f"{_PAGES}.sandbox_page", language=language))
        for prefix, language in _LANGUAGES.items()
    ),
    path("sandbox.json", imported_on_first_use(f"{_PAGES}.sandbox_json")),
    path(RESET_PATH.removeprefix("/"), reset),
]
urlpatterns: list[URLPattern] = [
    path(DOWNLOAD_PATH.removeprefix("/"), client_check),
    *(_sandbox if settings.ENVIRONMENT == "test" else ()),
]
