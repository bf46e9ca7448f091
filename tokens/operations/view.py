"""The operations of `paths` as views of Django: one request at a time, on its connection."""

import time
from collections.abc import Callable
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from tokens.operations.node import this_node
from tokens.operations.paths import OPERATIONS, Operation
from tokens.operations.steps import End, StepsTo, run
from tokens.request.arrival import receive
from tokens.request.form import MAX_BODY_BYTES
from tokens.store.denied_callers import store
from tokens.store.django_store import DjangoStore


def answer_by(operation: Operation, request: HttpRequest) -> HttpResponse:
    """The first "no" of a step ends it; nothing is answered before it is stored."""
    started, node = time.perf_counter(), this_node()
    body, fault = _read_body(request)
    arrival, raw = receive(request.META, body, node.clock.now(), fault)
    ended = run_now(operation.begin(node, arrival, raw))
    operation.report(arrival, ended, time.perf_counter() - started)
    store(node.denied_callers)
    answer = ended.answer
    return HttpResponse(
        answer.body, status=answer.status, reason=answer.reason, headers=answer.headers
    )


def view_of(path: str) -> Callable[..., HttpResponse]:
    """The view of the operation at this path."""
    return csrf_exempt(partial(answer_by, OPERATIONS[path]))


token_view = view_of("/connect/token")


def run_now(steps: StepsTo[End]) -> End:
    """Runs the steps of one request on Django's connection: nothing there waits for a loop."""
    try:
        run(steps, DjangoStore(), ends_at=0).send(None)
    except StopIteration as end:
        ended: End = end.value
        return ended
    raise RuntimeError("a step waits for an event loop")


def _read_body(request: HttpRequest) -> tuple[bytes, str]:
    try:
        return request.read(MAX_BODY_BYTES + 1), ""
    except OSError:
        return b"", "the connection broke before its end"
