"""One answer as a client saw it, and whether it is one of the contract's (contract 1). Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jwt

from proofs.fuzz.invariants import faults_of_headers, faults_of_issued, faults_of_refusal
from tests.servers.wire import WireAnswer

_STATUSES = (400, 405, 429, 503)
_HELP = re.compile(r'<https?://[^/]+/errors/[a-z_]+>; rel="help"')

NO_ANSWER = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request of a caller led to; times are of `time.monotonic`."""

    caller: str
    sent_at: float
    answered_at: float
    status: int = NO_ANSWER
    reference: str = ""
    token: str = ""
    fault: str = ""  # what is not as the contract says; empty if nothing is

    @property
    def seconds(self) -> float:
        return self.answered_at - self.sent_at


def read_answer(caller: str, times: tuple[float, float], answer: WireAnswer) -> Answer:
    """The answer to a request that was sent and answered at these times."""
    seen = Answer(caller, *times, answer.status, answer.headers.get("correlationid", ""))
    try:
        content: Any = answer.json
    except ValueError:
        return replace(seen, fault=f"status {answer.status} and no JSON")
    if answer.status == 200 and isinstance(content, dict):
        seen = replace(seen, token=str(content.get("access_token", "")))
    return replace(seen, fault=next(_faults_of(answer, content, seen), ""))


def no_answer(error: Exception) -> str:
    """The fault of a request that got none: a connection that was reset or closed, or silence."""
    return f"no answer: {type(error).__name__}"


def _faults_of(answer: WireAnswer, content: Any, seen: Answer) -> Iterator[str]:
    yield from faults_of_headers(answer, seen.reference)
    if answer.status == 200:
        yield from faults_of_issued(content)
        yield from _faults_of_token(answer.headers, seen)
        return
    if answer.status not in _STATUSES:
        yield f"status {answer.status}"
        return
    yield from faults_of_refusal(answer, content, seen.reference)
    if not _HELP.fullmatch(answer.headers.get("link", "")):
        yield f"Link is {answer.headers.get('link')!r}"
    if answer.status in (429, 503) and not answer.headers.get("retry-after", "").isdigit():
        yield f"status {answer.status} without Retry-After"


def _faults_of_token(headers: dict[str, str], seen: Answer) -> Iterator[str]:
    try:
        claims = jwt.decode(seen.token, options={"verify_signature": False})
    except jwt.InvalidTokenError:
        yield "a 200 without a token"
        return
    if claims.get("jti") != seen.reference:
        yield "correlationId is not the jti"
    represented = headers.get("x-represented-taxpayer", "")
    if not represented or represented != claims.get("sub"):
        yield f"X-Represented-Taxpayer is {represented!r}"
