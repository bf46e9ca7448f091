"""The pages for developers of ERP systems, in each language, their downloads and the sandbox."""

from django.conf import settings
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt

from tokens.answers.response import help_path
from tokens.http import imported_on_first_use
from tokens.refusals.table import REFUSALS

_ROOM, _CHECK = "identity.developers", "clientcheck.py"
# At its plain address a page is in the language that the browser asks for.
_LANGUAGES = {"": "", "en/": "en", "ms/": "ms"}


def _page(address: str, view: str, **about: str) -> list[URLPattern]:
    return [
        path(
            f"{prefix}{address}",
            imported_on_first_use(f"{_ROOM}.{view}", language=language, **about),
        )
        for prefix, language in _LANGUAGES.items()
    ]


SANDBOX = (
    path("sandbox.json", imported_on_first_use("identity.sandbox.listing.sandbox_json")),
    path("sandbox/portal", imported_on_first_use("identity.sandbox.portal.portal")),
    path("sandbox/reset", csrf_exempt(imported_on_first_use("identity.sandbox.listing.reset"))),
)
urlpatterns: list[URLPattern] = [
    *_page("", "home.home"),
    *_page("guide", "guide.guide", file="erp-developers.md"),
    *(
        page
        for name in ("api-teams", "management-api", "webhooks", "permission-requests")
        for page in _page(name, "guide.guide", file=f"{name}.md")
    ),
    *_page("packages/", "packages.packages"),
    path("packages/<path:name>", imported_on_first_use(f"{_ROOM}.packages.download")),
    *_page("reference", "guide.reference"),
    *_page("errors/", "errors.all_errors"),
    *((*SANDBOX, *_page("sandbox", "home.sandbox_page")) if settings.ENVIRONMENT == "test" else ()),
    *(
        page
        for reason in REFUSALS
        for page in _page(help_path(reason).removeprefix("/"), "errors.error", reason=reason)
    ),
    path("openapi.json", imported_on_first_use(f"{_ROOM}.openapi.document.as_json")),
    path(_CHECK, imported_on_first_use(f"{_ROOM}.pages.download", name=_CHECK)),
    path("developers/<str:name>", imported_on_first_use(f"{_ROOM}.pages.download")),
]
