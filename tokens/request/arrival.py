"""What a server received, as values: when and from where a login came, its bytes and headers."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from uuid_utils.compat import uuid7

from taxpayers.value import Value
from tokens.client_auth.certificate import CertificateHeaders
from tokens.login_settings import login_settings
from tokens.request.on_behalf_of import HEADER_IN_META, has_misspelled_header
from tokens.request.proxies import TrustedProxies
from tokens.request.token_request import RawTokenRequest


class Arrival(Value):
    """When and from where one login came."""

    id: UUID  # the key of the login event
    reference: str  # the same as text: the correlation id, the `jti` of the token
    at: datetime
    source_address: str | None
    user_agent: str


def receive(
    meta: Mapping[str, str], body: bytes, at: datetime, fault: str = ""
) -> tuple[Arrival, RawTokenRequest]:
    """A request that came at the moment `at`; `meta` is named as in CGI (RFC 3875). Never raises.

    `body` is all of it, or as much as shows that it is too long; `fault` is why it is not whole.
    """
    own = login_settings()
    proxies = _trusted(own.trusted_proxies)
    id_ = uuid7()
    arrival = Arrival(
        id=id_,
        reference=str(id_),
        at=at,
        source_address=proxies.source_address(meta),
        user_agent=meta.get("HTTP_USER_AGENT", ""),
    )
    raw = RawTokenRequest(
        method=meta.get("REQUEST_METHOD", ""),
        is_secure=not own.needs_https
        or proxies.is_secure(meta, meta.get("wsgi.url_scheme", "http")),
        body=body,
        body_fault=fault,
        content_type=meta.get("CONTENT_TYPE", ""),
        query_string=meta.get("QUERY_STRING", ""),
        authorization=meta.get("HTTP_AUTHORIZATION", ""),
        accept=meta.get("HTTP_ACCEPT", ""),
        on_behalf_of=meta.get(HEADER_IN_META),
        on_behalf_of_is_misspelled=has_misspelled_header(meta),
        certificate=reported_certificate(meta),
        dpop=meta.get("HTTP_DPOP"),
    )
    return arrival, raw


def reported_certificate(meta: Mapping[str, str]) -> CertificateHeaders | None:
    """What a trusted proxy reports of the client's certificate; None if there is none.

    Only with the setting MTLS_URL, by which the operators confirm that their proxies set these
    headers: another proxy passes on what clients send. And only with PROXY_SECRET, if it is set.
    """
    own = login_settings()
    if not own.mtls_url:
        return None
    return _trusted(own.trusted_proxies, own.proxy_secrets).certificate(meta)


def called_url(certificate: CertificateHeaders | None) -> str:
    """The base address that a client has called: only at one of the two it is asked for this."""
    return login_settings().issuer if certificate is None else login_settings().mtls_url


_trusted = lru_cache(maxsize=4)(TrustedProxies)
