"""The operations of `tokens.operations.paths` as views of Django: one request at a time.

The same as on the event loop (`tokens.operations.asgi`), but on Django's connection.
"""

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import View

from tokens.operations.node import this_node
from tokens.operations.paths import OPERATIONS
from tokens.operations.steps import End, StepsTo, run
from tokens.request.arrival import receive
from tokens.request.form import MAX_BODY_BYTES
from tokens.store.denied_callers import store
from tokens.store.django_store import DjangoStore


class OperationView(View):
    """One operation. The first "no" of a step ends it; nothing is answered before it is stored."""

    operation = OPERATIONS["/connect/token"]

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        started, node = time.perf_counter(), this_node()
        body, fault = _read_body(request)
        arrival, raw = receive(request.META, body, node.clock.now(), fault)
        ended = run_now(self.operation.begin(node, arrival, raw))
        self.operation.report(arrival, ended, time.perf_counter() - started)
        store(node.denied_callers)
        answer = ended.answer
        return HttpResponse(
            answer.body, status=answer.status, reason=answer.reason, headers=answer.headers
        )


def view_of(path: str) -> Callable[..., HttpResponseBase]:
    """The view of the operation at this path."""
    return csrf_exempt(OperationView.as_view(operation=OPERATIONS[path]))


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
