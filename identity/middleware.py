"""Public paths bypass the staff middleware: no session, CSRF or redirect (contract 1)."""

from typing import cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.utils import translation

from identity.urls import urlpatterns as public, views_of
from tokens.http import Handler
from tokens.request.proxies import TrustedProxies


def set_content_length(get_response: Handler) -> Handler:
    """Adds Content-Length: without it a server must close the connection after the response."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if not response.streaming and not response.has_header("Content-Length"):
            response["Content-Length"] = str(len(cast("HttpResponse", response).content))
        return response

    return middleware


def bypass_staff_middleware(get_response: Handler) -> Handler:
    """Calls the view of a public path directly; every other path takes the whole chain."""
    view_of = views_of(public)

    def middleware(request: HttpRequest) -> HttpResponseBase:
        view = view_of(request.path_info)
        if view is None:
            return get_response(request)
        translation.deactivate()  # this thread may have answered a page in Malay before
        response = view(request)
        return response.render() if isinstance(response, SimpleTemplateResponse) else response

    return middleware


def apply_forwarded_headers(get_response: Handler) -> Handler:
    """Gives the staff pages the client's address and scheme, as reported by a trusted proxy.

    Without the scheme Django would redirect the browser to HTTPS again and again, and refuse its
    forms; without the address the history and the lock-out would name the proxy.
    """
    proxies = TrustedProxies(settings.TRUSTED_PROXIES)

    def middleware(request: HttpRequest) -> HttpResponseBase:
        meta = request.META
        is_secure = proxies.is_secure(meta, meta.get("wsgi.url_scheme", "http"))
        meta["REMOTE_ADDR"] = proxies.source_address(meta) or meta.get("REMOTE_ADDR", "")
        meta["wsgi.url_scheme"] = "https" if is_secure else "http"
        return get_response(request)

    return middleware
