"""What must hold for every answer, whatever was sent (contract 1). Checked from the outside."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

from proofs.fuzz.corpus import API_PATH, LOGIN_PATH, OTHER_PATHS, FuzzInput
from proofs.fuzz.planted import Planted
from tests.servers.wire import WireAnswer

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DESCRIPTION = re.compile(r"[\x20-\x21\x23-\x5B\x5D-\x7E]+")
_ERRORS_OF_400 = (
    *("invalid_request", "invalid_client", "invalid_grant", "unauthorised_client"),
    *("unsupported_grant_type", "invalid_scope", "invalid_dpop_proof", "use_dpop_nonce"),
)
_ERRORS = {
    400: _ERRORS_OF_400,
    401: ("invalid_client",),
    **dict.fromkeys((405, 408, 413, 429), ("invalid_request",)),
    503: ("temporarily_unavailable",),
}
_STATUSES_OF_APIS = (400, 401, 403, 404, 405, 408, 409, 413, 429, 503)
_LOGIN_HEADERS = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "pragma": "no-cache",
}
_NOT_ON_A_LOGIN = ("www-authenticate", "set-cookie", "location", "vary")
_CHALLENGE = 'Basic realm="identity", charset="UTF-8"'
# Only these may answer with a page for people.
_STAFF_PATHS = re.compile(rb"/(?:admin|signin|language|static|errors)|\s(?:[a-z]+:/+[^/]*)?/[?#\s]")
_DEBUG_PAGE = (b"Traceback", b"DEBUG = True", b"Request information", b"Exception Value")
# A client that sends these letters means to act for another taxpayer.
_MEANS_ANOTHER = b"onbehalf"
_MALLEABLE = -1  # the last character of a signature has bits that mean nothing
_NOT_LETTERS = re.compile(rb"[^a-z]+")


def faults_of(sent: FuzzInput, answer: WireAnswer, planted: Planted) -> Iterator[str]:
    yield from _faults_of_status(sent, answer)
    leads_to_staff = _STAFF_PATHS.search(sent.decoded) is not None
    is_login = sent.path == LOGIN_PATH
    yield from _faults_of_page(answer, may_be_page=leads_to_staff and not is_login)
    body: Any = None
    if answer.headers.get("content-type", "").startswith("application/json") and answer.body:
        try:
            body = answer.json
        except ValueError:
            yield "the body is no JSON"
    if sent.path in OTHER_PATHS:
        yield from _faults_of_introspection(sent, answer, body)
    elif sent.path.startswith(API_PATH):
        yield from _faults_of_api(sent, answer, body, planted)
    elif leads_to_staff and not is_login and (answer.status == 303 or _is_page(answer)):
        pass  # the server's own answer to a long form: sign in, or a page that says why not
    elif is_login or (
        "correlationid" in answer.headers and answer.status != 404 and not sent.may_be_no_login
    ):
        yield from _faults_of_login(sent, answer, body, planted)
    yield from _faults_of_json(sent, body, planted)
    if not leads_to_staff:
        text = repr(sorted(answer.headers.items())).encode() + answer.body
        yield from (f"sends back {mark!r}" for mark in planted.marks if mark in text)


def _faults_of_status(sent: FuzzInput, answer: WireAnswer) -> Iterator[str]:
    if answer.status >= 500 and answer.status != 503:
        yield f"status {answer.status}"
    if sent.is_canary and answer.status not in (200, 503):
        yield f"a right login gets {answer.status}"


def _faults_of_page(answer: WireAnswer, *, may_be_page: bool) -> Iterator[str]:
    if answer.body and _is_page(answer):
        if not may_be_page:
            yield "a page where machines call"
        if any(mark in answer.body for mark in _DEBUG_PAGE):
            yield "a debug page"


def _is_page(answer: WireAnswer) -> bool:
    return "html" in answer.headers.get("content-type", "") or answer.body.lstrip()[:1] == b"<"


def _faults_of_json(sent: FuzzInput, body: Any, planted: Planted) -> Iterator[str]:
    if not isinstance(body, dict):
        return
    if "error" in body and set(body) - {"error", "error_description"}:
        yield f"an error with {sorted(body)}"
    if "access_token" in body and not planted.has_right_secret(sent.data):
        yield "a token without the right secret"


def _faults_of_login(
    sent: FuzzInput, answer: WireAnswer, body: Any, planted: Planted
) -> Iterator[str]:
    reference = answer.headers.get("correlationid", "")
    yield from faults_of_headers(answer, reference)
    yield from (f"a header {name}" for name in _NOT_ON_A_LOGIN if name in answer.headers)
    if answer.status == 200:
        yield from faults_of_issued(body)
        yield from _faults_of_represented(sent, answer.headers, planted)
    elif answer.status not in _ERRORS or answer.status == 401:
        yield f"status {answer.status} on the login"
    elif body is not None or b"HEAD" not in sent.data:
        yield from _faults_of_own_refusal(answer, body, reference)


def _faults_of_represented(
    sent: FuzzInput, headers: dict[str, str], planted: Planted
) -> Iterator[str]:
    """A client that means to act for another taxpayer gets no token for itself."""
    if sent.path != LOGIN_PATH:
        return  # what was sent may be more than one request
    in_head, elsewhere = _names(sent)
    if any(_means_another(name) for name in elsewhere):
        yield "a token for what names another taxpayer outside the headers"
    named = [name.lower() for name in in_head if _means_another(name)]
    represented = headers.get("x-represented-taxpayer", "")
    if not represented:
        yield "a token for nobody"
    elif any(name != b"onbehalfof" for name in named):
        yield "a token in spite of a misspelled onbehalfof"
    elif named and represented.encode() != planted.represented:
        yield f"a token for {represented} in spite of onbehalfof"


def _names(sent: FuzzInput) -> tuple[list[bytes], list[bytes]]:
    """Of the headers of one request; and of its parameters, or its trailers."""
    head, _, body = sent.data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    if b"chunked" in head.lower():
        fields, sign = body.rpartition(b"\r\n0\r\n")[2].split(b"\r\n"), b":"
    else:
        fields, sign = body.split(b"&"), b"="
    parameters = first.split(b" ")[1].partition(b"?")[2].split(b"&")
    elsewhere = [field.partition(sign)[0] for field in fields]
    elsewhere += [parameter.partition(b"=")[0] for parameter in parameters]
    return [line.partition(b":")[0] for line in lines], [*map(unquote_to_bytes, elsewhere)]


def _means_another(name: bytes) -> bool:
    return _MEANS_ANOTHER in _NOT_LETTERS.sub(b"", name.lower())


def faults_of_headers(answer: WireAnswer, reference: str) -> Iterator[str]:
    for name, value in _LOGIN_HEADERS.items():
        if answer.headers.get(name) != value:
            yield f"{name}: {answer.headers.get(name)}"
    if not _UUID.fullmatch(reference):
        yield f"correlationId {reference!r}"


def _faults_of_introspection(sent: FuzzInput, answer: WireAnswer, body: Any) -> Iterator[str]:
    """As a login, but 401 with a challenge; no right caller ever asks here, so 200 is nothing."""
    reference, challenge = (
        answer.headers.get(n, "") for n in ("correlationid", "www-authenticate")
    )
    yield from faults_of_headers(answer, reference)
    if challenge != (_CHALLENGE if answer.status == 401 else ""):
        yield f"{answer.status} with the challenge {challenge!r}"
    if answer.status == 200:
        if answer.body:
            yield f"a token that is not ours is answered {answer.body!r}"
    elif answer.status not in (401, *_ERRORS):
        yield f"status {answer.status}"
    elif body is not None or b"HEAD" not in sent.data:
        yield from _faults_of_own_refusal(answer, body, reference)


def faults_of_issued(body: Any) -> Iterator[str]:
    if not isinstance(body, dict) or not body.get("access_token"):
        yield "200 without a token"
    elif body.get("expires_in") != 3600 or body.get("token_type") != "Bearer":
        yield f"a token with {sorted(body)}"


def _faults_of_api(
    sent: FuzzInput, answer: WireAnswer, body: Any, planted: Planted
) -> Iterator[str]:
    challenge = answer.headers.get("www-authenticate", "")
    if answer.status == 200:
        if planted.access_token[:_MALLEABLE] not in sent.data:
            yield "an API has accepted what is no right token"
    elif answer.status not in _STATUSES_OF_APIS:
        yield f"status {answer.status} of an API"
    elif answer.body and (not isinstance(body, dict) or "error" not in body):
        yield f"an API refuses with {answer.body!r}"
    if challenge.startswith(("Bearer error=", "DPoP error=")) != (answer.status in (401, 403)):
        yield f"{answer.status} with the challenge {challenge!r}"


def faults_of_refusal(answer: WireAnswer, body: Any, reference: str) -> Iterator[str]:
    if not isinstance(body, dict) or set(body) != {"error", "error_description"}:
        yield f"a refusal with the body {answer.body!r}"
        return
    error, description = body["error"], body["error_description"]
    if error not in _ERRORS[answer.status]:
        yield f"{answer.status} with {error}"
    if not _DESCRIPTION.fullmatch(description) or not description.endswith(
        f" Reference: {reference}"
    ):
        yield f"the description {json.dumps(description)}"


def _faults_of_own_refusal(answer: WireAnswer, body: Any, reference: str) -> Iterator[str]:
    """With the reason phrase, which no proxy can choose for what it answers itself."""
    yield from faults_of_refusal(answer, body, reference)
    if isinstance(body, dict) and answer.reason != body.get("error"):
        yield f"the reason phrase {answer.reason!r} for {body.get('error')}"
