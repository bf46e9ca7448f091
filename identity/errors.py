"""The 400 and 404 for machines, where no view answered: JSON, whatever `Accept` says.

There is no redirect (contract 1); the 404 names the address that was probably meant.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.urls import is_valid_path
from uuid_utils.compat import uuid7

from tokens.http import error_response

_LOGIN = "/connect/token"
_INTROSPECTION, _REVOCATION = "/connect/introspect", "/connect/revocation"
_METADATA = "/.well-known/oauth-authorization-server"
_OTHER_METADATA = "/.well-known/openid-configuration"
_KEYS, _ME, _OPENAPI = "/.well-known/jwks.json", "/api/v1/me", "/openapi.json"
# The method that each takes.
_METHODS: Mapping[str, str] = {
    **dict.fromkeys((_LOGIN, _INTROSPECTION, _REVOCATION, "/sandbox/reset"), "POST"),
    **dict.fromkeys(("/api/v1/permission-requests", "/api/v1/connections"), "POST"),
    **dict.fromkeys((_METADATA, _OTHER_METADATA, _KEYS, _ME, _OPENAPI, "/status"), "GET"),
    **dict.fromkeys(("/api/v1/credentials/current", "/api/v1/permissions"), "GET"),
    **dict.fromkeys(("/api/v1/representatives", "/api/v1/statement", "/errors/"), "GET"),
    **dict.fromkeys(("/health", "/health/live", "/clientcheck.py"), "GET"),
    **dict.fromkeys(("/sandbox", "/sandbox.json"), "GET"),
}
# The last part of a path as other services name theirs, without punctuation.
_LAST_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("token", "tokens", "accesstoken", "login", "gettoken", "connect"), _LOGIN),
    **dict.fromkeys(("introspect", "introspection", "tokeninfo"), _INTROSPECTION),
    **dict.fromkeys(("revoke", "revocation"), _REVOCATION),
    **dict.fromkeys(("jwks", "certs", "keys"), _KEYS),
    **dict.fromkeys(("oauthauthorizationserver", "metadata"), _METADATA),
    "openidconfiguration": _OTHER_METADATA,
    **dict.fromkeys(("me", "userinfo"), _ME),
    **dict.fromkeys(("swagger", "openapi", "apidocs", "docs"), _OPENAPI),
    **dict.fromkeys(("error", "errors"), "/errors/"),
}
_LONGEST = 200


def meant_by(path: str) -> str:
    """The method and the path that were probably meant, as `POST /connect/token`; or nothing."""
    for meant in _candidates(path[:_LONGEST]):
        if "sandbox" not in meant or is_valid_path(meant):  # it is only in the test environment
            return f"{_METHODS[meant]} {meant}"
    return ""


def _candidates(path: str) -> Iterator[str]:
    # Other capital letters, doubled slashes, a slash or blank at the end, percent-encoding.
    parts = [part.strip() for part in unquote(path).lower().split("/") if part.strip()]
    plain = f"/{'/'.join(parts)}"
    yield from (known for known in _METHODS if known.rstrip("/") == plain)
    if parts:
        last = re.sub(r"[^a-z0-9]", "", parts[-1]).removesuffix("json")
        if last in _LAST_PARTS:
            yield _LAST_PARTS[last]


logger = logging.getLogger("identity.server")

NOTHING = "There is nothing at this path."
_RIGHT_ONE = (
    " Send {method} to {url} instead, exactly so: capital letters and every slash count, and there"
    " is no redirect."
)
_MALFORMED = "The request is malformed. The developer of the client must correct it."


def bad_request(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Django refuses the request itself, for example for its Host."""
    return error_response(400, "invalid_request", _MALFORMED)


def not_found(request: HttpRequest, exception: Exception) -> JsonResponse:
    """There is no such path; where it is clear which one was meant, the text names that one."""
    method, _, path = meant_by(request.path_info).partition(" ")
    if not path:
        return error_response(404, "not_found", NOTHING)
    reference, url = str(uuid7()), settings.AUTH_URL + path
    text = f"{NOTHING}{_RIGHT_ONE.format(method=method, url=url)} Reference: {reference}"
    answer = error_response(404, "not_found", text)
    answer["correlationId"] = reference
    answer["Link"] = f'<{url}>; rel="related", <{settings.AUTH_URL}/>; rel="help"'
    logger.info("wrong path", extra={"reference": reference, "meant": path})
    return answer
