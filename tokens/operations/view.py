"""The operations of `tokens.operations.paths` as views of Django: one request at a time.

The same steps as on the event loop (`tokens.operations.asgi`), on Django's connection.
"""

import time
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import View

from tokens.answers.response import Ended
from tokens.calls import Call
from tokens.operations.node import this_node
from tokens.operations.paths import OPERATIONS
from tokens.operations.steps import End, LockedRead, StepsTo, advance, fail
from tokens.request.arrival import receive
from tokens.request.form import MAX_BODY_BYTES
from tokens.store import django_store as store


class OperationView(View):
    """One operation. The first "no" of a step ends it; nothing is answered before it is stored."""

    operation = OPERATIONS["/connect/token"]

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        started, node = time.perf_counter(), this_node()
        body, fault = _read_body(request)
        arrival, raw = receive(request.META, body, node.clock.now(), fault)
        ended = run(self.operation.begin(node, arrival, raw))
        self.operation.report(arrival, ended, time.perf_counter() - started)
        answer = ended.answer
        return HttpResponse(
            answer.body, status=answer.status, reason=answer.reason, headers=answer.headers
        )


def view_of(path: str) -> Callable[..., HttpResponseBase]:
    """The view of the operation at this path."""
    return csrf_exempt(OperationView.as_view(operation=OPERATIONS[path]))


token_view = view_of("/connect/token")


def run(steps: StepsTo[End]) -> End:
    """Runs the steps of one request, each call on Django's connection of this thread."""
    step = advance(steps)
    while not isinstance(step, Ended):
        try:
            result = _perform(step, steps)
        except Exception as error:  # noqa: BLE001 - the steps decide what it means
            step = fail(steps, error)
        else:
            is_step = isinstance(result, Ended | LockedRead)
            step = result if is_step else advance(steps, result)
    return step


def _perform(step: Call | LockedRead, steps: StepsTo[Any]) -> Any:
    if not isinstance(step, LockedRead):
        return store.perform(step)
    with store.client_locked(step.query) as reading:
        following = advance(steps, reading)
        if isinstance(following, Ended | LockedRead):
            return following
        return store.perform(following)


def _read_body(request: HttpRequest) -> tuple[bytes, str]:
    try:
        return request.read(MAX_BODY_BYTES + 1), ""
    except OSError:
        return b"", "the connection broke before its end"
