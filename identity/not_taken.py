"""What the server answers itself, in the format of the address: a problem, a page, or our JSON."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest
from django.http.cookie import parse_cookie
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext
from uuid_utils.compat import uuid7

from identity.api.framework.problems import MEDIA_TYPE, PROBLEMS, Problem, problem_body
from identity.management_api import BASE_PATH
from identity.server.answers import CONTENT_TOO_LARGE, malformed, unavailable
from identity.server.overload import NotSignedIn, NotTaken, Scope, TooLong, header_of
from tokens.answers.response import Answer

_RETRY = {"Retry-After": "5"}
_STAFF = ("/admin/", "/signin/")


def answer_of(fault: NotTaken, scope: Scope) -> Answer:
    """The answer to a request that no application gets."""
    path = scope["path"] if settings.SERVE != "login" else ""
    if path.startswith(f"/{BASE_PATH}/"):
        return _problem(fault)
    if path.startswith(_STAFF):
        return _page(fault, scope)
    if isinstance(fault, TooLong):
        return malformed(f"the body is longer than {fault.most_bytes} bytes", CONTENT_TOO_LARGE)
    return unavailable()


def _problem(fault: NotTaken) -> Answer:
    if isinstance(fault, TooLong):
        problem = Problem("content_too_large")
    elif isinstance(fault, NotSignedIn):
        challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
        problem = Problem("invalid_token", str(fault), headers=challenge)
    else:
        problem = Problem("temporarily_unavailable", headers=_RETRY)
    reference = str(uuid7())
    body = json.dumps(problem_body(problem, reference)).encode()
    headers = {"Content-Type": MEDIA_TYPE, **problem.headers}
    return _answer(PROBLEMS[problem.kind].status, body, headers, reference)


def _page(fault: NotTaken, scope: Scope) -> Answer:
    """Who is not signed in gets the page again, which leads to the sign-in."""
    if isinstance(fault, NotSignedIn):
        location = (scope["raw_path"] + b"?" + scope["query_string"]).rstrip(b"?").decode("latin-1")
        return _answer(303, b"", {"Location": location})
    request = HttpRequest()
    request.COOKIES = parse_cookie(header_of(scope, b"cookie"))
    request.META["HTTP_ACCEPT_LANGUAGE"] = header_of(scope, b"accept-language")
    with translation.override(translation.get_language_from_request(request)):
        if isinstance(fault, TooLong):
            status, headers = 413, {}
            title, text = gettext("Too large"), gettext("Nothing was saved. Go back and send less.")
        else:
            status, headers, title = 503, _RETRY, gettext("Too busy")
            text = gettext("Nothing was saved. Wait a minute, go back and try again.")
        body = render_to_string("not_taken.html", {"title": title, "text": text}).encode()
    html = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    }
    return _answer(status, body, html | headers)


def _answer(status: int, body: bytes, headers: Mapping[str, str], reference: str = "") -> Answer:
    all_headers = {
        **headers,
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "correlationId": reference or str(uuid7()),
    }
    return Answer(status, HTTPStatus(status).phrase, all_headers, body)
