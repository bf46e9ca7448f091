"""What Django received, as values: when and from where a login came, and its bytes and headers."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from uuid_utils.compat import uuid7

from tokens.endpoint.form import MAX_BODY_BYTES
from tokens.endpoint.proxies import BODY_FAULT, TrustedProxies
from tokens.endpoint.request import RawTokenRequest


@dataclass(frozen=True, slots=True)
class Arrival:
    """When and from where one login came.

    `id` is the correlation id, the key of the login event and the `jti` of the token.
    """

    id: UUID
    at: datetime
    source_address: str | None
    user_agent: str


def receive(request: HttpRequest) -> tuple[Arrival, RawTokenRequest]:
    """Reads the request to its end, or as far as a login may be long. Never raises."""
    meta = request.META
    proxies = _trusted(tuple(settings.TRUSTED_PROXIES))
    arrival = Arrival(
        id=uuid7(),
        at=datetime.now(UTC),
        source_address=proxies.source_address(meta),
        user_agent=meta.get("HTTP_USER_AGENT", ""),
    )
    body, fault = _read_body(request)
    raw = RawTokenRequest(
        method=request.method or "",
        is_secure=not settings.AUTH_URL.startswith("https:")
        or proxies.is_secure(meta, meta.get("wsgi.url_scheme", "http")),
        body=body,
        body_fault=fault,
        content_type=meta.get("CONTENT_TYPE", ""),
        query_string=meta.get("QUERY_STRING", ""),
        authorization=meta.get("HTTP_AUTHORIZATION", ""),
        on_behalf_of=meta.get("HTTP_ONBEHALFOF"),
    )
    return arrival, raw


def _read_body(request: HttpRequest) -> tuple[bytes, str]:
    if fault := request.META.get(BODY_FAULT):
        return b"", fault
    try:
        return request.read(MAX_BODY_BYTES + 1), ""
    except OSError:
        return b"", "the connection broke before its end"


_trusted = lru_cache(maxsize=4)(TrustedProxies)
