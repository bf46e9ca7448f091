"""`GET /clientcheck.py`: the client check for teams of ERP systems, in every environment."""

from functools import cache

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from tokens.http import read_only

DOWNLOAD_PATH = "/clientcheck.py"


@cache
def _file() -> bytes:
    return bytes((settings.BASE_DIR / "clientcheck" / "clientcheck.py").read_bytes())


@read_only
def client_check(request: HttpRequest) -> HttpResponse:
    """The file as it is, to be stored."""
    return HttpResponse(
        _file(),
        content_type="text/x-python; charset=utf-8",
        headers={
            "Cache-Control": "public, max-age=3600",
            "Content-Disposition": 'attachment; filename="clientcheck.py"',
            "X-Content-Type-Options": "nosniff",
        },
    )
