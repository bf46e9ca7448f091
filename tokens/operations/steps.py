"""The steps of one request, without any input or output, and how they are run (contract 1).

What a request needs from the database its steps yield, as a call; `run` sends the result, or throws
the error. The store decides where: on Django's connection, one request at a time, or on an event
loop, many at once. They never raise: whatever happens, the client gets an answer.
"""

import logging
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from django.db import Error, OperationalError
from prometheus_client import Counter

from taxpayers.facts.values import FactsQuery
from taxpayers.rules import Refused
from taxpayers.value import Value
from tokens.answers.response import Ended
from tokens.calls import Call
from tokens.operations.recent_writes import recent_writes
from tokens.refusals.table import ProtocolReason
from tokens.request.arrival import Arrival
from tokens.store.async_store import AsyncStore
from tokens.store.django_store import DjangoStore

logger = logging.getLogger("tokens.login")


class LockedRead(Value):
    """A call for a client's facts; they do not change until the login's next call is done."""

    query: FactsQuery


End = TypeVar("End", bound=Ended)
Store = AsyncStore | DjangoStore
StepsTo = Generator[Call | LockedRead, Any, End]  # of any request


async def run(steps: StepsTo[End], store: Store, ends_at: float) -> End:
    """Runs the steps of one request to its end."""
    step = advance(steps)
    while not isinstance(step, Ended):
        try:
            result = await _perform(step, steps, store, ends_at)
        except Exception as error:  # noqa: BLE001 - the steps decide what it means
            step = fail(steps, error)
        else:
            is_step = isinstance(result, Ended | LockedRead)
            step = result if is_step else advance(steps, result)
    return step


async def _perform(
    step: Call | LockedRead, steps: StepsTo[Any], store: Store, ends_at: float
) -> Any:
    if not isinstance(step, LockedRead):
        return await store.perform(step, ends_at)
    async with store.client_locked(step.query, ends_at) as (reading, perform):
        following = advance(steps, reading)
        if isinstance(following, Ended | LockedRead):
            return following
        return await perform(following)


def advance(steps: StepsTo[End], result: Any = None) -> Call | LockedRead | End:
    """The next call of a request, or its end; `result` is that of the call before."""
    try:
        return steps.send(result)
    except StopIteration as end:
        ended: End = end.value
        return ended


def fail(steps: StepsTo[End], error: Exception) -> Call | LockedRead | End:
    """As `advance`, after a call that failed."""
    try:
        return steps.throw(error)
    except StopIteration as end:
        ended: End = end.value
        return ended


class EndedRequest(Ended):
    """Who asked, as far as it is known, about the token of which login, and its status."""

    client_id: str = ""
    login: str = ""
    status: str = ""


def reporter(
    to: logging.Logger, counter: Counter, operation: str, *about: str
) -> Callable[[Arrival, EndedRequest, float], None]:
    """Counts what was answered after so long, and logs it with these fields unless throttled."""

    def report(arrival: Arrival, ended: EndedRequest, seconds: float) -> None:
        counter.labels(ended.outcome).inc()
        if ended.outcome == ProtocolReason.RATE_LIMITED:
            return
        extra: dict[str, Any] = {
            "reference": arrival.reference,
            "outcome": ended.outcome,
            **{name: getattr(ended, name) for name in about},
            "source_address": arrival.source_address,
            "milliseconds": round(seconds * 1000, 2),
        }
        to.info(operation, extra=extra)

    return report


def refusal_of(arrival: Arrival, error: Exception, message: str = "login failed") -> Refused:
    """What the caller is told of an error: the refusal itself, or a 503 or 500 without detail."""
    if isinstance(error, Refused):
        # Its traceback holds the frame that holds it: only the garbage collector would end them.
        return error.with_traceback(None)
    recent_writes.failed(error)
    # While the database is out of reach each login fails: many tracebacks would say nothing more.
    exc_info = None if isinstance(error, OperationalError) else error
    cause = f"{type(error).__module__}.{type(error).__qualname__}: {error}"
    extra = {"reference": arrival.reference, "error": cause}
    logger.error(message, exc_info=exc_info, extra=extra)
    is_outage = isinstance(error, Error)
    reason = ProtocolReason.TEMPORARILY_UNAVAILABLE if is_outage else ProtocolReason.SERVER_ERROR
    return Refused(reason)
