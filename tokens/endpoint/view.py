"""`POST /connect/token` as a view of Django: one login at a time, on Django's connection.

The same steps as on the event loop (`tokens.endpoint.asgi`).
"""

import logging
import time
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import View

from tokens.endpoint.arrival import Arrival, receive
from tokens.endpoint.form import MAX_BODY_BYTES
from tokens.endpoint.login import EndedLogin, LockedRead, Steps, advance, fail, log_in
from tokens.endpoint.node import this_node
from tokens.endpoint.recording import client_id_as_sent
from tokens.login_events import store
from tokens.login_events.store import Call
from tokens.metrics import count_login

logger = logging.getLogger("tokens.login")


class TokenView(View):
    """The login. The first "no" of a step ends it; nothing is answered before it is recorded."""

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        started, node = time.perf_counter(), this_node()
        body, fault = _read_body(request)
        arrival, raw = receive(request.META, body, node.clock.now(), fault)
        ended = run(log_in(node, arrival, raw))
        report(arrival, ended, time.perf_counter() - started)
        answer = ended.answer
        return HttpResponse(
            answer.body, status=answer.status, reason=answer.reason, headers=answer.headers
        )


token_view = csrf_exempt(TokenView.as_view())


def run(steps: Steps) -> EndedLogin:
    """Runs the steps of one login, each call on Django's connection of this thread."""
    step = advance(steps)
    while not isinstance(step, EndedLogin):
        try:
            result = _perform(step, steps)
        except Exception as error:  # noqa: BLE001 - the steps decide what it means
            step = fail(steps, error)
        else:
            is_step = isinstance(result, EndedLogin | LockedRead)
            step = result if is_step else advance(steps, result)
    return step


def _perform(step: Call | LockedRead, steps: Steps) -> Any:
    if not isinstance(step, LockedRead):
        return store.perform(step)
    with store.client_locked(step.query) as reading:
        following = advance(steps, reading)
        if isinstance(following, EndedLogin | LockedRead):
            return following
        return store.perform(following)


def report(arrival: Arrival, ended: EndedLogin, seconds: float) -> None:
    """Counts and logs a login that was answered after so long."""
    count_login(ended.outcome, seconds, ended.throttled_for)
    logger.info(
        "login",
        extra={
            "reference": str(arrival.id),
            "outcome": ended.outcome,
            "client_id": client_id_as_sent(ended.sent),
            "source_address": arrival.source_address,
            "milliseconds": round(seconds * 1000, 2),
        },
    )


def _read_body(request: HttpRequest) -> tuple[bytes, str]:
    try:
        return request.read(MAX_BODY_BYTES + 1), ""
    except OSError:
        return b"", "the connection broke before its end"
