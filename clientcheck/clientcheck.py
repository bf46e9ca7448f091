#!/usr/bin/env python3
"""Client check: plays the tax authority against your ERP system, and reports what that does.

    python clientcheck.py --port 9000     then let your ERP system log in at http://127.0.0.1:9000
    python clientcheck.py doctor --url https://…    looks at the real service from your machine

One file, Python 3.9 or newer, nothing to install. Give your ERP system the address and the
credentials that are shown, let it send a few documents for each of the taxpayers, and open
http://127.0.0.1:9000/ for the report. Everything that it calls below /api/ is a protected API.
"""

from __future__ import annotations

import argparse
import base64
import getpass
import html
import http.client
import json
import os
import random
import re
import signal
import socket
import ssl
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, NamedTuple
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit
from uuid import UUID

CLIENT_ID = "ci_test_1WHMii0zjuXaemEDTRWCot0aSiBl"
SECRET = "cs_test_dplALdBf9O3OFZEgvNihLZB7fj74vH9bdj6Da8aG3MB40VRql"
NEW_SECRET = "cs_test_ZDYrsabgcs0AtKycviCqjp9yUQrnjbqJ56MIZgRnzSP2X9nwR"
OWN = "C9990000003"
REPRESENTED = ("C9990000010", "C9990000015:202001234567")
RETRY_AFTER, RETRY_UNAVAILABLE, SLOW = 3, 5, 5.0  # seconds
MOST_REPEATS = 3  # of a login that only people can make right
# Shares of a token's time: renewals seen, at least so far apart, the last not later than this.
MOMENTS, SPREAD, LATEST = 5, 0.05, 0.95
MOST_WAITING = 3.0  # seconds between two calls of an ERP system that does not wait
DAY, YEAR = 86400, 365 * 86400

# --- What the service answers ---------------------------------------------------------------------

# The status, the error and the text of each refusal, as the real service has them.
REFUSALS = {
    "method_not_allowed": (
        405,
        "invalid_request",
        "This address takes POST only. The developer of the ERP system must change the request.",
    ),
    "malformed_request": (
        400,
        "invalid_request",
        "The request is malformed: {detail}. The developer of the ERP system must correct it.",
    ),
    "missing_parameter": (
        400,
        "invalid_request",
        "The parameter {detail} is missing or empty. The developer of the ERP system must send"
        " it in the form body.",
    ),
    "unsupported_grant_type": (
        400,
        "unsupported_grant_type",
        "grant_type must be exactly client_credentials. The developer of the ERP system must"
        " correct it.",
    ),
    "malformed_on_behalf_of": (
        400,
        "invalid_request",
        "The header onbehalfof is wrong: {detail}. The developer of the ERP system must send it"
        " once, as TIN or TIN:ROB, or leave it out to log in as the taxpayer itself.",
    ),
    "invalid_credentials": (
        400,
        "invalid_client",
        "client_id or client_secret is wrong. The operator of the ERP system must compare both"
        " with what was issued at registration, or have a new secret issued.",
    ),
    "secret_expired": (
        400,
        "invalid_client",
        "This client_secret expired on {detail}. The person who rotates the secrets of this ERP"
        " system must put a new one in place.",
    ),
    "rate_limited": (
        429,
        "invalid_request",
        "Too many logins. Wait as long as Retry-After says. The developer of the ERP system"
        " must reuse a token until shortly before it expires, and wait longer after each"
        " failure.",
    ),
    "no_permission": (
        400,
        "invalid_grant",
        "The taxpayer named by onbehalfof has granted this intermediary no permission, or the"
        " number is wrong. The represented taxpayer must grant it.",
    ),
    "temporarily_unavailable": (
        503,
        "temporarily_unavailable",
        "The service cannot answer right now. Nothing is wrong with the request: try again"
        " after the time in Retry-After, and wait longer after each failure.",
    ),
}
NO_CREDENTIALS = (
    "The parameter client_secret is missing or empty, and no client_assertion and no client"
    " certificate came in its place. The developer of the ERP system must send what the client"
    " logs in with."
)
FORM = "application/x-www-form-urlencoded"
IN_QUERY = (
    "client_id and client_secret belong in the body: in the query string they end up in logs. Treat"
    " this secret as compromised and have it replaced"
)
_PATTERN = re.compile(r"[A-Z0-9]{5,20}(:[A-Z0-9-]{5,20})?")


class Answer(NamedTuple):
    """What is sent, after `delay` seconds; `is_cut`: the connection is closed instead."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes
    delay: float = 0.0
    is_cut: bool = False


@dataclass
class Request:
    """What the ERP system has sent, at the moment `at` in seconds."""

    method: str
    path: str
    query: str
    headers: list[tuple[str, str]]
    body: bytes
    at: float

    def all(self, name: str) -> list[str]:
        """The values of this header."""
        return [value for key, value in self.headers if key.lower() == name]


class Refused(Exception):
    """The reason, and what its text names."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def new_reference(at: float) -> str:
    """A UUIDv7 (RFC 9562)."""
    number = int(at * 1000) << 80 | 7 << 76 | random.getrandbits(12) << 64 | 2 << 62
    return str(UUID(int=number | random.getrandbits(62)))


def moment(at: float) -> str:
    """RFC 3339, in UTC."""
    return datetime.fromtimestamp(int(at), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def answer_of(status: int, reason: str, reference: str, body: dict[str, Any]) -> Answer:
    """The shape of every answer of the login."""
    encoded = json.dumps(body).encode()
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(encoded)),
        "Cache-Control": "no-store",
        "Pragma": "no-cache",
        "correlationId": reference,
    }
    return Answer(status, reason, headers, encoded)


def refusal_of(refused: Refused, reference: str, url: str, at: float) -> Answer:
    """The answer of the real service for this reason."""
    status, error, text = REFUSALS[refused.reason]
    if (refused.reason, refused.detail) == ("missing_parameter", "client_secret"):
        text = NO_CREDENTIALS
    text = f"{text.format(detail=refused.detail)} Reference: {reference}"
    answer = answer_of(status, error, reference, {"error": error, "error_description": text})
    answer.headers["Link"] = f'<{url}/errors/{refused.reason}>; rel="help"'
    if refused.reason == "method_not_allowed":
        answer.headers["Allow"] = "POST"
    elif refused.reason == "temporarily_unavailable":
        answer.headers["Retry-After"] = str(RETRY_UNAVAILABLE)
    elif refused.reason == "rate_limited":
        answer.headers.update(
            {
                "Retry-After": str(RETRY_AFTER),
                "X-Rate-Limit-Limit": "12",
                "X-Rate-Limit-Remaining": "0",
                "X-Rate-Limit-Reset": moment(at + RETRY_AFTER),
            }
        )
    return answer


def secret_headers(ends_at: float) -> dict[str, str]:
    """What is told of a client after a right secret."""
    return {
        "X-Client-Secret-Expires-At": moment(ends_at),
        "X-Rate-Limit-Limit": "12",
        "X-Rate-Limit-Remaining": "11",
    }


def read_form(request: Request) -> dict[str, str]:
    """The parameters with a value. Raises Refused."""
    if request.method != "POST":
        raise Refused("method_not_allowed")
    kind = (request.all("content-type") or [""])[0].partition(";")[0]
    if kind.strip().lower() != FORM:
        raise Refused("malformed_request", f"the body must be a form with the Content-Type {FORM}")
    if any(name in ("client_id", "client_secret") for name, _ in parse_qsl(request.query)):
        raise Refused("malformed_request", IN_QUERY)
    values = read_pairs(request.body.decode("latin-1"))
    scheme, _, basic = (request.all("authorization") or [""])[0].partition(" ")
    if scheme.lower() == "basic":
        values.update(read_basic(basic))
    for name in ("grant_type", "client_id", "client_secret"):
        if name not in values:
            raise Refused("missing_parameter", name)
    if values["grant_type"] != "client_credentials":
        raise Refused("unsupported_grant_type")
    return values


def read_pairs(text: str) -> dict[str, str]:
    """The parameters of the body; without a value one counts as left out. Raises Refused."""
    values: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        if spells_on_behalf_of(name):
            raise Refused("malformed_on_behalf_of", "it is sent as a parameter, not as a header")
        if value and name in values:
            raise Refused("malformed_request", f"the parameter {name} is sent more than once")
        if value:
            values[name] = value
    return values


def read_basic(text: str) -> dict[str, str]:
    """Id and secret of HTTP Basic; none if it cannot be read."""
    try:
        user, colon, secret = base64.b64decode(text.strip(), validate=True).decode().partition(":")
    except ValueError:
        return {}
    return {"client_id": unquote_plus(user), "client_secret": unquote_plus(secret)} if colon else {}


def spells_on_behalf_of(name: str) -> bool:
    """Whether this was meant as the header onbehalfof."""
    return "onbehalf" in re.sub(r"[^a-z]", "", name.lower())


def read_on_behalf_of(request: Request) -> str:
    """The taxpayer that it means to act for; its own without the header. Raises Refused."""
    reason = "malformed_on_behalf_of"
    names = {name.lower() for name, _ in request.headers if spells_on_behalf_of(name)}
    if names - {"onbehalfof"}:
        raise Refused(reason, "it is sent under another name")
    values = request.all("onbehalfof")
    if not values:
        return OWN
    if not values[0].strip():
        raise Refused(reason, "it is empty")
    if len(values) > 1 or "," in values[0]:
        raise Refused(reason, "it is sent twice or holds a list")
    taxpayer = values[0].strip().upper()
    if not _PATTERN.fullmatch(taxpayer) or taxpayer not in (OWN, *REPRESENTED):
        raise Refused("no_permission")
    return taxpayer


# --- What happens ---------------------------------------------------------------------------------


class Fault:
    """What the service does to a login on purpose."""

    SLOW, CUT, LIMIT, DOWN, SKEW, ENDED = "slow", "cut", "429", "503", "skew", "ended"


# What is done to the login of this number, among those that are right. In between they are answered
# as usual, so that every taxpayer has a token.
PLAN = {
    6: Fault.SLOW,
    9: Fault.CUT,
    12: Fault.LIMIT,
    15: Fault.DOWN,
    20: Fault.SKEW,
}
DOWN_TIMES = 3  # in a row, for the same taxpayer
ROTATE_AFTER, END_SECRET_AFTER = 23, 28  # so many right logins
SKEW_SECONDS = 7200


@dataclass
class Token:
    """One that was issued: its taxpayer, and how it was used."""

    text: str
    subject: str
    at: float
    ends_at: float
    is_skewed: bool = False
    has_old_key: bool = False
    calls: int = 0
    rejected: int = 0

    @property
    def half_at(self) -> float:
        """When half of its time is over: no client needs another one before."""
        return (self.at + self.ends_at) / 2


@dataclass
class Login:
    """One login as the service saw it: what was done to it, and why it was refused."""

    at: float
    subject: str
    fault: str = ""
    reason: str = ""
    detail: str = ""
    reference: str = ""
    secret: str = ""
    token: Token | None = None


@dataclass
class Call:
    """One call of a protected API: the taxpayer that its path or body names, if any."""

    at: float
    token: Token | None
    meant: str
    status: int


@dataclass
class Authority:
    """The service: answers, and remembers what it has seen. `at` of a request is its only clock."""

    url: str = "http://127.0.0.1:9000"
    token_seconds: int = 60
    plan: dict[int, str] = field(default_factory=lambda: dict(PLAN))
    rotate_after: int = ROTATE_AFTER
    end_secret_after: int = END_SECRET_AFTER
    logins: list[Login] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    tokens: dict[str, Token] = field(default_factory=dict)
    secrets_in_urls: int = 0
    right: int = 0
    key: int = 1
    secret_ended_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def handle(self, request: Request) -> Answer:
        """The answer to any request."""
        with self.lock:
            if any(secret in f"{request.path}?{request.query}" for secret in (SECRET, NEW_SECRET)):
                self.secrets_in_urls += 1
            if request.path == "/connect/token":
                return self._login(request)
            if request.path.startswith("/api/"):
                return self._call(request)
            return self._page(request)

    # The login

    def _login(self, request: Request) -> Answer:
        reference = new_reference(request.at)
        login = Login(request.at, "", reference=reference)
        self.logins.append(login)
        try:
            form = read_form(request)
            login.subject = OWN
            login.subject = read_on_behalf_of(request)
            login.secret = self._authenticate(form, request.at)
        except Refused as refused:
            login.reason, login.detail = refused.reason, refused.detail
            answer = refusal_of(refused, reference, self.url, request.at)
            if refused.reason in ("secret_expired", "no_permission"):
                ends_at = self.secret_ended_at or request.at + DAY
                answer.headers.update(secret_headers(ends_at))
            return answer
        self.right += 1
        return self._planned(login)

    def _authenticate(self, form: dict[str, str], at: float) -> str:
        secret = form["client_secret"]
        if form["client_id"] != CLIENT_ID or secret not in (SECRET, NEW_SECRET):
            raise Refused("invalid_credentials")
        if self.right >= self.end_secret_after and not self.secret_ended_at:
            self.secret_ended_at = at
        if secret == SECRET and self.secret_ended_at:
            shown = datetime.fromtimestamp(self.secret_ended_at, timezone.utc)
            raise Refused("secret_expired", f"{shown:%Y-%m-%d %H:%M:%S} (UTC+0000)")
        return secret

    def _planned(self, login: Login) -> Answer:
        login.fault = self.plan.get(self.right, "")
        before = [x.fault for x in self.logins[:-1] if x.subject == login.subject][-DOWN_TIMES:]
        if (
            self.right not in self.plan
            and before[-1:] == [Fault.DOWN]
            and before != [Fault.DOWN] * DOWN_TIMES
        ):
            login.fault = Fault.DOWN
        if login.fault in (Fault.LIMIT, Fault.DOWN):
            login.reason = (
                "rate_limited" if login.fault == Fault.LIMIT else "temporarily_unavailable"
            )
            answer = refusal_of(Refused(login.reason), login.reference, self.url, login.at)
            if login.fault == Fault.LIMIT:
                ends = moment(login.at + YEAR)
                answer.headers["X-Client-Secret-Expires-At"] = ends
            return answer
        if login.fault == Fault.CUT:
            return Answer(0, "", {}, b"", is_cut=True)
        if self.right == self.rotate_after:
            self.key += 1
            for token in self.tokens.values():
                token.has_old_key = True
        login.token = self._issue(login)
        body = {
            "access_token": login.token.text,
            "expires_in": self.token_seconds,
            "token_type": "Bearer",
            "scope": "InvoicingAPI",
        }
        answer = answer_of(200, "OK", login.reference, body)
        answer.headers["X-Represented-Taxpayer"] = login.subject
        share = random.uniform(0.5, 0.9)  # noqa: S311 - so that clients do not come together
        answer.headers["X-Renew-At"] = moment(login.at + self.token_seconds * share)
        answer.headers.update(secret_headers(login.at + YEAR))
        return answer._replace(delay=SLOW if login.fault == Fault.SLOW else 0.0)

    def _issue(self, login: Login) -> Token:
        skew = SKEW_SECONDS if login.fault == Fault.SKEW else 0
        issued_at = int(login.at) - skew
        tin, _, rob = login.subject.partition(":")
        claims: dict[str, Any] = {
            "iss": self.url,
            "sub": login.subject,
            "aud": "InvoicingAPI",
            "client_id": CLIENT_ID,
            "jti": login.reference,
            "iat": issued_at,
            "exp": issued_at + self.token_seconds,
            "scope": "InvoicingAPI",
            "taxpayer": {"tin": tin, "rob": rob} if rob else {"tin": tin},
            "status": {"status_list": {"idx": 0, "uri": f"{self.url}/status/0"}},
        }
        if login.subject != OWN:
            claims["act"] = {"sub": OWN}
            claims["permissions"] = ["documents:submit", "documents:view"]
        head = {"typ": "at+jwt", "alg": "ES256", "kid": f"client-check-{self.key}"}
        parts = [json.dumps(part).encode() for part in (head, claims)] + [os.urandom(64)]
        text = ".".join(base64.urlsafe_b64encode(p).decode().rstrip("=") for p in parts)
        ends_at = login.at + self.token_seconds
        token = Token(text, login.subject, login.at, ends_at, is_skewed=bool(skew))
        self.tokens[text] = token
        return token

    # A protected API

    def _call(self, request: Request) -> Answer:
        sent = (request.all("authorization") or [""])[0]
        token = self.tokens.get(sent[7:].strip()) if sent[:7].lower() == "bearer " else None
        meant = meant_taxpayer(f"{request.path}?{request.query}\n{request.body.decode('latin-1')}")
        is_good = token is not None and request.at < token.ends_at and not token.has_old_key
        self.calls.append(Call(request.at, token, meant, 200 if is_good else 401))
        if is_good and token is not None:
            token.calls += 1
            return _json(200, "OK", {"status": "accepted", "taxpayer": token.subject})
        if token is not None:
            token.rejected += 1
        text = "The access token has expired or is not valid. Log in again."
        answer = _json(401, "Unauthorized", {"error": "invalid_token", "error_description": text})
        answer.headers["WWW-Authenticate"] = (
            f'Bearer error="invalid_token", error_description="{text}"'
        )
        return answer

    def _page(self, request: Request) -> Answer:
        findings = check(self)
        if request.path == "/report.json":
            return _json(200, "OK", as_json(findings))
        if request.path == "/":
            page = as_html(findings).encode()
            kind = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(page))}
            return Answer(200, "OK", kind, page)
        text = "There is nothing at this path."
        return _json(404, "Not Found", {"error": "not_found", "error_description": text})


def meant_taxpayer(text: str) -> str:
    """The one taxpayer that a call names, by its TIN; empty if it names none, or several."""
    found = [taxpayer for taxpayer in (OWN, *REPRESENTED) if taxpayer.partition(":")[0] in text]
    return found[0] if len(found) == 1 else ""


def _json(status: int, reason: str, body: dict[str, Any]) -> Answer:
    encoded = json.dumps(body).encode()
    kind = {"Content-Type": "application/json", "Content-Length": str(len(encoded))}
    return Answer(status, reason, {**kind, "Cache-Control": "no-store"}, encoded)


# --- What it means --------------------------------------------------------------------------------

FAIL, NOT_SEEN, NOTE, PASS = STATES = ("fail", "not seen", "note", "pass")


@dataclass
class Finding:
    """One check: what was seen, and what to do about it."""

    name: str
    state: str
    seen: str
    advice: str


def check(authority: Authority, log: str = "") -> list[Finding]:
    """Every check, in the order in which a developer would look at them.

    `log` is the text of the ERP system's own log.
    """
    findings = [found(authority) for found in CHECKS]
    return [*findings, *_log_findings(authority, log)]


Found = Callable[[Authority], Finding]
CHECKS: list[Found] = []


def _check(name: str, advice: str) -> Callable[[Callable[[Authority], tuple[str, str]]], Found]:
    def register(look: Callable[[Authority], tuple[str, str]]) -> Found:
        def found(authority: Authority) -> Finding:
            state, seen = look(authority)
            return Finding(name, state, seen, "" if state == PASS else advice)

        CHECKS.append(found)
        return found

    return register


def issued(authority: Authority) -> list[Token]:
    """The tokens in the order in which they were issued."""
    return [login.token for login in authority.logins if login.token is not None]


def successive(authority: Authority) -> Iterator[tuple[Token, Login]]:
    """Each token with the next right login for the same taxpayer."""
    for number, login in enumerate(authority.logins):
        after = next_login(authority, number)
        if login.token is not None and after is not None:
            yield login.token, after


def next_login(authority: Authority, number: int) -> Login | None:
    """The next login for the same taxpayer as that of this number."""
    subject = authority.logins[number].subject
    return next((x for x in authority.logins[number + 1 :] if x.subject == subject), None)


def after_faults(authority: Authority, *faults: str) -> list[tuple[Login, Login]]:
    """Each login to which this was done, with the next one for the same taxpayer."""
    pairs = (
        (x, next_login(authority, n)) for n, x in enumerate(authority.logins) if x.fault in faults
    )
    return [(login, after) for login, after in pairs if after is not None]


@_check("the request has the right form", "Correct the request as error_description says.")
def _form(authority: Authority) -> tuple[str, str]:
    reasons = ("method_not_allowed", "malformed_request", "missing_parameter")
    wrong = [x for x in authority.logins if x.reason in (*reasons, "unsupported_grant_type")]
    if wrong:
        return (
            FAIL,
            f"{len(wrong)} logins were refused: {wrong[0].reason} {wrong[0].detail}".strip(),
        )
    return (PASS, "Every login was readable.") if authority.logins else (NOT_SEEN, "No login came.")


@_check(
    "no secret in a URL",
    "Send client_id and client_secret in the form body, and replace the secret.",
)
def _url(authority: Authority) -> tuple[str, str]:
    if authority.secrets_in_urls:
        return FAIL, f"{authority.secrets_in_urls} requests had a secret in their address."
    return (PASS, "No address had a secret.") if authority.logins else (NOT_SEEN, "No login came.")


@_check(
    "the header onbehalfof is right",
    f"Send the header onbehalfof once, with exactly this name, to act for {REPRESENTED[0]}.",
)
def _header(authority: Authority) -> tuple[str, str]:
    wrong = [x for x in authority.logins if x.reason in ("malformed_on_behalf_of", "no_permission")]
    if wrong:
        return FAIL, f"{len(wrong)} logins were refused: {wrong[0].detail or wrong[0].reason}."
    if any(token.subject != OWN for token in issued(authority)):
        return PASS, "A login on behalf of another taxpayer was right."
    return NOT_SEEN, "No login was on behalf of another taxpayer."


@_check(
    "each call has the token of its taxpayer",
    "Store tokens by client and represented taxpayer, send onbehalfof with each login for another"
    " taxpayer, and never on a shared HTTP client. To see it: let the calls name a TIN in path or"
    f" body, and send documents of {', '.join(REPRESENTED)}.",
)
def _taxpayers(authority: Authority) -> tuple[str, str]:
    known = [c for c in authority.calls if c.meant and c.token is not None]
    wrong = [c for c in known if c.token is not None and c.token.subject != c.meant]
    if wrong and wrong[0].token is not None:
        own = " (the login had no onbehalfof)" if wrong[0].token.subject == OWN else ""
        return FAIL, (
            f"{len(wrong)} calls had the token of another taxpayer, first one for {wrong[0].meant}"
            f" with that of {wrong[0].token.subject}{own}."
        )
    if len({c.meant for c in known}) > 1:
        return PASS, f"{len(known)} calls for several taxpayers had the right token."
    return NOT_SEEN, "There were no calls for two taxpayers by their TIN."


@_check(
    "a token is used for many calls",
    "Store the token and use it for at least half of its time: no login for each call.",
)
def _reuse(authority: Authority) -> tuple[str, str]:
    pairs = [(t, x) for t, x in successive(authority) if not t.is_skewed and not t.has_old_key]
    early = [x for t, x in pairs if x.at < t.half_at]
    if len(early) > 1 and 2 * len(early) > len(pairs):
        return (
            FAIL,
            f"{len(early)} of {len(pairs)} logins came while a token was still good for long.",
        )
    most = max((token.calls for token in issued(authority)), default=0)
    return (
        (PASS, f"A token was used for up to {most} calls.")
        if most > 1
        else (
            NOT_SEEN,
            "No token was used for two calls.",
        )
    )


@_check(
    "logs in again before the token expires",
    "Log in again between half and nine tenths of expires_in, not after the first 401.",
)
def _renewal(authority: Authority) -> tuple[str, str]:
    expired = [call for call in authority.calls if call.token and call.at >= call.token.ends_at]
    if expired:
        return FAIL, f"{len(expired)} calls had a token that had expired."
    pairs = [(token, login) for token, login in successive(authority) if not token.has_old_key]
    in_time = [login for token, login in pairs if token.half_at <= login.at < token.ends_at]
    if in_time:
        return PASS, f"{len(in_time)} tokens were replaced before they expired."
    return NOT_SEEN, f"No token was replaced: it takes {authority.token_seconds} seconds."


@_check(
    "renews at another moment each time",
    "Renew at a random moment between half and nine tenths of expires_in, or at X-Renew-At, so that"
    " not all ERP systems log in at the same moment.",
)
def _spread(authority: Authority) -> tuple[str, str]:
    shares = [
        (login.at - token.at) / (token.ends_at - token.at)
        for token, login in successive(authority)
        if not (token.is_skewed or token.rejected) and token.half_at <= login.at < token.ends_at
    ]
    if len(shares) < MOMENTS:
        return NOT_SEEN, f"{len(shares)} tokens were renewed in time: {MOMENTS} are needed."
    first, last = min(shares), max(shares)
    seen = f"Tokens were renewed after {first:.0%} to {last:.0%} of their time."
    return (FAIL if last - first < SPREAD or last > LATEST else PASS), seen


def after_busy(authority: Authority) -> Iterator[tuple[Token, Login, Login]]:
    """A token that was still good, the login that got 429 or 503 instead of the next one, and the
    login after that.
    """
    for login, after in after_faults(authority, Fault.LIMIT, Fault.DOWN):
        had = [t for t in issued(authority) if t.subject == login.subject and t.at < login.at]
        if had and had[-1].ends_at > login.at + MOST_WAITING:
            yield had[-1], login, after


@_check(
    "keeps its token while the service is away",
    "When a login gets 429, 503 or no answer, go on with the old token until that ends, and try"
    " again meanwhile: no invoice waits.",
)
def _keeps(authority: Authority) -> tuple[str, str]:
    waited = seen = 0
    for token, login, after in after_busy(authority):
        until = min(after.at, token.ends_at)
        seen += any(c.token is token and login.at < c.at < until for c in authority.calls)
        new = after.token
        calls = [c.at for c in authority.calls if new is not None and c.token is new]
        waited += bool(
            calls
            and min(calls) < after.at + 1
            and after.at - login.at > MOST_WAITING
            and not any(c.token is token and login.at < c.at < until for c in authority.calls)
        )
    if waited:
        return FAIL, f"Calls waited {waited} times for a login, though the old token was good."
    if seen:
        return PASS, f"It went on with its token {seen} times when a login got 429 or 503."
    return NOT_SEEN, "No login got 429 or 503 while the old token was good."


@_check(
    "logs in again after a 401",
    "After 401 drop the token, log in once and repeat the call once.",
)
def _rotation(authority: Authority) -> tuple[str, str]:
    rejected = [token for token in issued(authority) if token.has_old_key and token.rejected]
    stuck = [token for token in rejected if token.rejected > 3]
    if stuck:
        return FAIL, f"A token was sent {stuck[0].rejected} times though it was refused with 401."
    if any(token.has_old_key and token.rejected for token, _login in successive(authority)):
        return PASS, "After a signing key was replaced, it logged in again."
    return NOT_SEEN, "No call had a token of the replaced signing key: go on with calls."


@_check("waits as long as Retry-After says", "After 429 wait Retry-After seconds (an integer).")
def _retry_after(authority: Authority) -> tuple[str, str]:
    gaps = [after.at - login.at for login, after in after_faults(authority, Fault.LIMIT)]
    if not gaps:
        return NOT_SEEN, "No login came after a 429."
    if min(gaps) < RETRY_AFTER - 0.05:
        return FAIL, f"It came again after {min(gaps):.1f} of {RETRY_AFTER} seconds."
    return PASS, f"It came again after {min(gaps):.1f} seconds."


def pauses_of_outage(authority: Authority) -> list[float]:
    """The pauses after each 503 of one taxpayer's logins."""
    return [after.at - login.at for login, after in after_faults(authority, Fault.DOWN)]


@_check(
    "waits longer after each 503",
    "Wait at least Retry-After seconds, and after each further 503 up to twice as long again.",
)
def _backoff(authority: Authority) -> tuple[str, str]:
    pauses = pauses_of_outage(authority)
    if not pauses:
        return NOT_SEEN, "No login came after a 503."
    shown = ", ".join(f"{pause:.1f}" for pause in pauses)
    if min(pauses) < RETRY_UNAVAILABLE - 0.05:
        return FAIL, f"It came again after {shown} seconds; Retry-After was {RETRY_UNAVAILABLE}."
    if len(pauses) < 2:
        return NOT_SEEN, f"One pause was seen: {shown} seconds."
    # With full jitter a later pause may be shorter; pauses that never grow are nearly alike.
    if max(pauses[1:]) < pauses[0] * 1.2 and max(pauses) < min(pauses) * 1.5:
        return FAIL, f"The pauses did not grow: {shown} seconds."
    return PASS, f"The pauses: {shown} seconds."


@_check(
    "its pauses have a random part",
    "Add a random part to each pause, so that not all ERP systems come back at the same moment.",
)
def _jitter(authority: Authority) -> tuple[str, str]:
    pauses = pauses_of_outage(authority)
    if len(pauses) < 2:
        return NOT_SEEN, "Fewer than two pauses were seen."
    shown = ", ".join(f"{pause:.2f}" for pause in pauses)
    if all(pause % 0.5 < 0.02 for pause in pauses):
        return FAIL, f"Every pause was a round number: {shown} seconds."
    return PASS, f"The pauses: {shown} seconds."


@_check(
    "does not trust the clock of the token",
    "Count expires_in from the moment of the answer; never compare exp with your own clock.",
)
def _skew(authority: Authority) -> tuple[str, str]:
    skewed = [token for token in issued(authority) if token.is_skewed]
    if not skewed:
        return NOT_SEEN, "No token of a service with another clock was issued."
    token = skewed[0]
    if any(t is token and x.at < t.half_at for t, x in successive(authority)):
        return FAIL, "It logged in again at once, because exp was in the past by its clock."
    if token.calls > 1:
        return PASS, "It used a token whose exp was in the past by its clock."
    return NOT_SEEN, "The token of the other clock was not used for two calls."


@_check(
    "waits for a slow answer",
    f"Wait for an answer for at least {SLOW + 5:.0f} seconds, and send no second login meanwhile.",
)
def _slow(authority: Authority) -> tuple[str, str]:
    slow = [x for x in authority.logins if x.fault == Fault.SLOW]
    if not slow:
        return NOT_SEEN, "No login was answered slowly."
    login = slow[0]
    others = [x for x in authority.logins if x.subject == login.subject]
    meanwhile = [x for x in others if login.at < x.at < login.at + SLOW]
    if meanwhile:
        return FAIL, f"{len(meanwhile)} more logins came before the slow one was answered."
    if login.token is not None and login.token.calls:
        return PASS, f"It waited {SLOW:.0f} seconds for its token, and used it."
    return NOT_SEEN, "The token of the slow answer was not used."


@_check(
    "tries again after a cut connection",
    "Repeat the login after a pause: it is safe to repeat. Not at once, and not without an end.",
)
def _cut(authority: Authority) -> tuple[str, str]:
    cut = [x for x in authority.logins if x.fault == Fault.CUT]
    if not cut:
        return NOT_SEEN, "No connection was cut."
    at, subject = cut[0].at, cut[0].subject
    at_once = [x for x in authority.logins if x.subject == subject and at < x.at < at + 1]
    if len(at_once) > 2:
        return FAIL, f"It came {len(at_once)} times within a second."
    if after_faults(authority, Fault.CUT):
        return PASS, "It logged in again."
    return NOT_SEEN, "No further login came for this taxpayer."


@_check(
    "stops after a refusal that only people can solve",
    "After 400 show error_description to a person, and do not repeat the same login before"
    " something was changed.",
)
def _stops(authority: Authority) -> tuple[str, str]:
    ended = [x for x in authority.logins if x.reason in ("secret_expired", "invalid_credentials")]
    if not ended:
        return NOT_SEEN, "No login was refused because of its secret: go on."
    soon = [x.subject for x in ended if x.at < ended[0].at + 30]
    most = max(soon.count(subject) for subject in soon)
    seen = f"The refused login was sent {most} times within 30 seconds."
    return (FAIL if most > MOST_REPEATS else PASS), seen


@_check(
    "takes a new secret",
    "When its secret has ended, enter the new one that was shown at the start.",
)
def _new_secret(authority: Authority) -> tuple[str, str]:
    if any(x.secret == NEW_SECRET for x in authority.logins):
        return PASS, "It logged in with the new secret."
    return NOT_SEEN, "The new secret was not used."


def _log_findings(authority: Authority, log: str) -> Iterator[Finding]:
    advice = "Write error_description with its reference into the log, and show it to the user."
    name, refused = "logs the reference of a refusal", [x for x in authority.logins if x.reason]
    if not log or not refused:
        yield Finding(
            name, NOT_SEEN, "No log was given, or nothing was refused: --log FILE.", advice
        )
    else:
        shown = [x for x in refused if x.reference in log]
        missing = f"{len(refused) - len(shown)} of {len(refused)} references are not in the log."
        state = PASS if len(shown) == len(refused) else FAIL
        yield Finding(name, state, missing if state == FAIL else "Every reference is in the log.",
                      advice if state == FAIL else "")  # fmt: skip
    advice = "Never log a request with its secret, or a token."
    name = "logs no secret and no token"
    if not log:
        yield Finding(name, NOT_SEEN, "No log was given: --log FILE.", advice)
    elif SECRET in log or NEW_SECRET in log or any(text in log for text in authority.tokens):
        yield Finding(name, FAIL, "The log has a secret or a token.", advice)
    else:
        yield Finding(name, PASS, "The log has no secret and no token.", "")


# --- The report -----------------------------------------------------------------------------------


def as_json(findings: list[Finding]) -> dict[str, Any]:
    """For a ticket, or for the tests of the ERP system."""
    states = [finding.state for finding in findings]
    counts = {state: states.count(state) for state in STATES}
    return {"counts": counts, "checks": [asdict(finding) for finding in findings]}


def as_text(findings: list[Finding]) -> str:
    """For a terminal: what others sent is no control sequence there."""
    lines = []
    for finding in sorted(findings, key=lambda f: STATES.index(f.state)):
        lines.append(f"{finding.state.upper():9} {finding.name}: {finding.seen}")
        if finding.advice:
            lines.append(f"          {finding.advice}")
    return "\n".join("".join(c if c.isprintable() else "?" for c in line) for line in lines)


def as_html(findings: list[Finding]) -> str:
    """For a browser; nothing in it is loaded from elsewhere."""
    rows = "\n".join(
        f"<tr><td>{html.escape(f.state)}</td><th>{html.escape(f.name)}</th>"
        f"<td>{html.escape(f.seen)}</td><td>{html.escape(f.advice)}</td></tr>"
        for f in findings
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<title>Client check</title></head>"
        "<body><h1>Client check</h1><table><thead><tr><th>State</th><th>Check</th><th>Seen</th>"
        f"<th>What to do</th></tr></thead><tbody>\n{rows}\n</tbody></table></body></html>"
    )


# --- The server -----------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    """HTTP around an Authority, which is that of its server."""

    protocol_version = "HTTP/1.1"
    server: Server

    def answer(self) -> None:
        """The answer to any method."""
        parts = urlsplit(self.path)
        length = self.headers.get("Content-Length", "0")
        body = self.rfile.read(int(length)) if length.isdigit() else b""
        request = Request(
            self.command, parts.path, parts.query, self.headers.items(), body, time.time()
        )
        answer = self.server.authority.handle(request)
        time.sleep(answer.delay)
        if answer.is_cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(answer.status, answer.reason)
        self.send_header("Date", self.date_time_string())
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = answer  # noqa: N815 - its names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        """Writes nothing: a request line may have a secret."""


class Server(ThreadingHTTPServer):
    """Listens only on this machine."""

    daemon_threads = True

    def __init__(self, port: int, authority: Authority) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.authority = authority
        authority.url = f"http://127.0.0.1:{self.server_address[1]}"


# --- doctor: the real service, from this machine --------------------------------------------------

# More than any answer of the service: who sends more, or never ends, is not the service.
ANSWER_SECONDS, ANSWER_BYTES, TEXT_LENGTH = 30.0, 2**18, 1000


class Doctor:
    """Looks at the service as an ERP system on this machine sees it. Its report has no secret."""

    def __init__(self, url: str, client_id: str, secret: str, on_behalf_of: str) -> None:
        self.url, parts = url.rstrip("/"), urlsplit(url)
        self.host, self.is_tls = parts.hostname or "", parts.scheme == "https"
        self.port = parts.port or (443 if self.is_tls else 80)
        self.prefix = parts.path.rstrip("/")
        self.client_id, self.secret, self.on_behalf_of = client_id, secret, on_behalf_of
        self.findings: list[Finding] = []
        self._metadata_is_right = False

    def examine(self) -> list[Finding]:
        """All findings; what cannot be reached ends it, with what to do."""
        name = ""
        try:
            for step in (self._dns, self._tls, self._metadata, self._login):
                name = step.__name__.strip("_")
                step()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._add(name, FAIL, f"{type(error).__name__}: {error}", ADVICE[name])
        return self.findings

    def _add(self, name: str, state: str, seen: str, advice: str = "") -> None:
        if self.secret:  # an answer may repeat it
            seen, advice = (text.replace(self.secret, "[hidden]") for text in (seen, advice))
        seen, advice = seen[:TEXT_LENGTH], advice[:TEXT_LENGTH]
        self.findings.append(Finding(name, state, seen, "" if state == PASS else advice))

    def _dns(self) -> None:
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        self._add(
            "dns", PASS, f"{self.host} is {', '.join(sorted({str(x[4][0]) for x in found}))}."
        )

    def _tls(self) -> None:
        if not self.is_tls:
            self._add("tls", NOTE, "No TLS: only for a trial on your own machine.")
            return
        started = time.monotonic()
        context = ssl.create_default_context()
        plain = socket.create_connection((self.host, self.port), 10)
        with plain, context.wrap_socket(plain, server_hostname=self.host) as secured:
            certificate: dict[str, Any] = dict(secured.getpeercert() or {})
            version = secured.version()
        took = time.monotonic() - started
        ends_at = ssl.cert_time_to_seconds(certificate["notAfter"])
        days = int((ends_at - time.time()) / DAY)
        issuer = ", ".join(value for part in certificate.get("issuer", ()) for _, value in part)
        seen = (
            f"{version} in {took * 1000:.0f} ms. The chain and the name {self.host} are right; the"
            f" certificate of {issuer} ends {moment(ends_at)}, in {days} days."
        )
        self._add("tls", PASS, seen)

    def _ask(
        self, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
    ) -> tuple[http.client.HTTPResponse, dict[str, Any], float]:
        kind = http.client.HTTPSConnection if self.is_tls else http.client.HTTPConnection
        connection = kind(self.host, self.port, timeout=15)
        started = time.monotonic()
        connection.connect()
        # The timeout is that of each piece: this one ends an answer that never does.
        end = threading.Timer(ANSWER_SECONDS, connection.sock.shutdown, [socket.SHUT_RDWR])
        end.daemon = True
        end.start()
        try:
            connection.request(method, self.prefix + path, body or None, headers or {})
            response = connection.getresponse()
            content = response.read(ANSWER_BYTES)
        finally:
            end.cancel()
            connection.close()
        took = time.monotonic() - started
        try:
            data = json.loads(content)
        except (ValueError, RecursionError):
            data = {}
        return response, data if isinstance(data, dict) else {}, took

    def _metadata(self) -> None:
        response, data, took = self._ask("GET", "/.well-known/oauth-authorization-server")
        issuer = data.get("issuer", "")
        self._metadata_is_right = issuer == self.url
        state = PASS if self._metadata_is_right else FAIL
        seen = (
            f"Status {response.status} in {took * 1000:.0f} ms; the issuer is {issuer or 'none'}."
        )
        self._add("metadata", state, seen, ADVICE["metadata"])
        self._clock(response.getheader("Date"), took)

    def _clock(self, date: str | None, took: float) -> None:
        if date is None:
            self._add("clock", NOTE, "The answer has no Date.")
            return
        theirs = datetime.strptime(date, "%a, %d %b %Y %H:%M:%S %Z").replace(tzinfo=timezone.utc)
        # A Date has whole seconds, cut off.
        difference = time.time() - took / 2 - theirs.timestamp() - 0.5
        state = PASS if abs(difference) < 5 else FAIL
        side = "ahead" if difference > 0 else "behind"
        seen = f"Your clock is {abs(difference):.0f} seconds {side}."
        self._add("clock", state, seen, ADVICE["clock"])

    def _login(self) -> None:
        if not self.secret:
            self._add("login", NOTE, "No client_id and secret were given: no login was tried.")
            return
        if not self._may_have_the_secret():
            seen = "The secret was not sent: this address has another issuer, or no TLS."
            self._add("login", NOTE, seen, ADVICE["metadata"])
            return
        form = urlencode(
            {
                "grant_type": "client_credentials",
                "client_id": self.client_id,
                "client_secret": self.secret,
            }
        )
        headers = {"Content-Type": FORM}
        if self.on_behalf_of:
            headers["onbehalfof"] = self.on_behalf_of
        response, data, took = self._ask("POST", "/connect/token", form, headers)
        seen = f"Status {response.status} {response.reason} in {took * 1000:.0f} ms."
        reference = response.getheader("correlationId") or "missing"
        if response.status != 200:
            text = str(data.get("error_description", "The answer has no error_description."))
            self._add("login", FAIL, f"{seen} {text}", f"The reference is {reference}.")
            return
        self._add("login", PASS, f"{seen} The reference is {reference}.")
        self._represented(response.getheader("X-Represented-Taxpayer") or "")
        self._secret_end(response.getheader("X-Client-Secret-Expires-At"))
        self._address(str(data.get("access_token", "")))

    def _may_have_the_secret(self) -> bool:
        is_here = self.host in ("localhost", "127.0.0.1", "::1")
        return self._metadata_is_right and (self.is_tls or is_here)

    def _represented(self, taxpayer: str) -> None:
        wanted = self.on_behalf_of.strip().upper()
        if wanted and taxpayer != wanted:
            seen = f"The token is for {taxpayer or 'no named taxpayer'}, not for {wanted}."
            self._add("onbehalfof", FAIL, seen, ADVICE["onbehalfof"])
        else:
            arrived = "The header onbehalfof arrives: the" if wanted else "The"
            self._add("onbehalfof", PASS, f"{arrived} token is for {taxpayer}.")

    def _secret_end(self, ends: str | None) -> None:
        if ends is None:
            self._add("secret", NOTE, "The answer does not name the end of the secret.")
            return
        ends_at = datetime.strptime(ends, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
        days = int((ends_at.timestamp() - time.time()) / DAY)
        state = PASS if days >= 30 else FAIL
        self._add("secret", state, f"The secret ends {ends}, in {days} days.", ADVICE["secret"])

    def _address(self, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        response, data, _took = self._ask("GET", "/api/v1/credentials/current", "", headers)
        address = data.get("source_address")
        if response.status == 200 and address:
            self._add("address", PASS, f"The service sees you as {address}.")
        else:
            self._add(
                "address", NOTE, f"The service did not say how it sees you: {response.status}."
            )


ADVICE = {
    "dns": "Ask your network administrator why this name is not known here.",
    "tls": "Allow this connection in your firewall, and install the authorities that this machine"
    " lacks. Never switch the check of certificates off.",
    "metadata": "Compare --url with the address that the tax authority has given to you.",
    "clock": "Set the clock of this machine by NTP.",
    "login": "Allow POST requests to this address in your firewall or proxy.",
    "onbehalfof": "A proxy between you and the service removes or changes the header onbehalfof.",
    "secret": "Have a new secret issued and put it in place before this one ends.",
}


# --- The command line -----------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """0 if no check failed, 1 if one did."""
    parser = argparse.ArgumentParser(description="Checks how an ERP system logs in.")
    parser.add_argument("--json", metavar="FILE", help="also write the report as JSON")
    parser.add_argument("--html", metavar="FILE", help="also write the report as HTML")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--token-seconds", type=int, default=60, help="how long a token is valid")
    parser.add_argument("--minutes", type=float, help="end after so long; without it at Ctrl-C")
    parser.add_argument("--log", metavar="FILE", help="the log of the ERP system, read at the end")
    commands = parser.add_subparsers(dest="command")
    doctor = commands.add_parser("doctor", help="look at the real service from this machine")
    doctor.add_argument("--url", required=True, help="the address that the tax authority gave you")
    doctor.add_argument("--client-id", default=os.environ.get("CLIENT_ID", ""))
    doctor.add_argument("--onbehalfof", default="", help="the taxpayer to act for")
    options = parser.parse_args(arguments)
    findings = _examine(options) if options.command else _play(options)
    sys.stdout.write(as_text(findings) + "\n")
    if options.json:
        Path(options.json).write_text(json.dumps(as_json(findings), indent=2), encoding="utf-8")
    if options.html:
        Path(options.html).write_text(as_html(findings), encoding="utf-8")
    return 1 if any(finding.state == FAIL for finding in findings) else 0


def _examine(options: argparse.Namespace) -> list[Finding]:
    # Never an argument: other users of the machine see these.
    secret = os.environ.get("CLIENT_SECRET", "")
    if options.client_id and not secret:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", getpass.GetPassWarning)
                secret = getpass.getpass("client_secret (not shown): ")
        except (EOFError, getpass.GetPassWarning):
            sys.exit("Set CLIENT_SECRET: here is no terminal at which it could be typed unseen.")
    return Doctor(options.url, options.client_id, secret, options.onbehalfof).examine()


def _play(options: argparse.Namespace) -> list[Finding]:
    authority = Authority(token_seconds=options.token_seconds)
    server = Server(options.port, authority)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(
        f"""The client check plays the tax authority. Give your ERP system

  address          {authority.url}   (login: {authority.url}/connect/token, APIs: below /api/)
  client_id        {CLIENT_ID}
  client_secret    {SECRET}
  new secret       {NEW_SECRET}   (enter it when the first one has ended)
  own taxpayer     {OWN}
  acts for         {", ".join(REPRESENTED)}

and let it send documents of all three for about half an hour. Here a token is valid for
{options.token_seconds} seconds. The report: {authority.url}/ (Ctrl-C ends and prints it)

"""
    )
    sys.stdout.flush()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        ended.wait(None if options.minutes is None else options.minutes * 60)
    except KeyboardInterrupt:
        sys.stdout.write("\n")
    server.shutdown()
    server.server_close()
    log = Path(options.log).read_text(encoding="utf-8", errors="replace") if options.log else ""
    return check(authority, log)


if __name__ == "__main__":
    sys.exit(main())
