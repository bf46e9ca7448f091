"""`GET /postman.json` and `/bruno.zip`: made once in each process."""

import json
from functools import cache

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from identity.developers.collections.bruno import FOLDER, bruno_zip
from identity.developers.collections.postman import postman_collection
from identity.developers.downloads import static_answer
from tokens.http import read_only

# Tools in a browser may read it from another site.
_POSTMAN = {
    "Access-Control-Allow-Origin": "*",
    "Content-Disposition": f'attachment; filename="{FOLDER}.postman_collection.json"',
}
_BRUNO = {"Content-Disposition": f'attachment; filename="{FOLDER}.zip"'}


@read_only
def postman(request: HttpRequest) -> HttpResponse:
    """The collection for Postman and for what reads its format."""
    return static_answer(request, "application/json", _postman(settings.AUTH_URL), _POSTMAN)


@read_only
def bruno(request: HttpRequest) -> HttpResponse:
    """The collection for Bruno."""
    return static_answer(request, "application/zip", _bruno(settings.AUTH_URL), _BRUNO)


@cache
def _postman(auth_url: str) -> bytes:
    return json.dumps(postman_collection(auth_url), ensure_ascii=False, indent=1).encode()


@cache
def _bruno(auth_url: str) -> bytes:
    return bruno_zip(auth_url)
