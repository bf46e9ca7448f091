"""A span for each call of a database, and inside it one for each statement that carried it.

The difference is how long the call waited: for the statement before, or for a connection.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any

from django.db import connection
from opentelemetry.trace import Span, SpanKind, get_current_span, set_span_in_context

from identity.traces.export import Export
from identity.traces.spans import Attributes, span_of
from taxpayers.facts.values import FactsQuery, Reading
from tokens.calls import (
    ApiSecretUse,
    AssertionUse,
    Call,
    CountedLogin,
    FailedAuthentication,
    FailedLogin,
    ProofUse,
    RejectedRequest,
    TakeStatusIndex,
    TokenQuery,
    TokenRevocation,
    Write,
)
from tokens.store.async_store import AsyncStore, Observe
from tokens.store.lanes import Executor

NAMES: dict[type, str] = {
    FactsQuery: "read registry",
    TokenQuery: "read token",
    CountedLogin: "record login",
    FailedLogin: "record login",
    RejectedRequest: "record login",
    FailedAuthentication: "record authentication",
    TokenRevocation: "revoke token",
    ApiSecretUse: "record use of secret",
    AssertionUse: "record use of assertion",
    ProofUse: "record use of proof",
    TakeStatusIndex: "take status index",
}


class TracedStore(AsyncStore):
    """As its parent; what a request asks that is not recorded takes the same path as there."""

    def __init__(self, export: Export, observe: Observe) -> None:
        self._export = export
        # By id: two logins of one client may ask the same, and a call lives until its span ends.
        self._open: dict[int, Span] = {}
        super().__init__(observe, lambda one: _TracedExecutor(one, export, self._open))

    def perform(self, call: Call, ends_at: float) -> Awaitable[Any]:
        """As its parent."""
        performing = super().perform
        if not get_current_span().is_recording():
            return performing(call, ends_at)
        return self._traced(call, lambda: performing(call, ends_at))

    async def _traced(self, call: Call, perform: Callable[[], Awaitable[Any]]) -> Any:
        with span_of(self._export.tracer, NAMES[type(call)]) as span:
            self._open[id(call)] = span
            try:
                return await perform()
            finally:
                del self._open[id(call)]

    @asynccontextmanager
    async def client_locked(
        self, query: FactsQuery, ends_at: float
    ) -> AsyncIterator[tuple[Reading, Callable[[Call], Awaitable[Any]]]]:
        """As its parent; one span from the lock to the commit."""
        locked = super().client_locked(query, ends_at)
        with ExitStack() as stack:
            if get_current_span().is_recording():
                stack.enter_context(span_of(self._export.tracer, "lock client"))
            async with locked as reading_and_perform:
                yield reading_and_perform


class _TracedExecutor:
    """Executes as another one does."""

    def __init__(self, executor: Executor, export: Export, calls: dict[int, Span]) -> None:
        self._executor = executor
        self._export = export
        self._calls = calls

    async def execute(self, calls: Sequence[Call], send_by: float) -> list[Any]:
        with self._statements(calls):
            return await self._executor.execute(calls, send_by)

    async def results_of_stored(self, calls: Sequence[Write]) -> dict[Write, Any]:
        with self._statements(calls):
            return await self._executor.results_of_stored(calls)

    async def close(self) -> None:
        await self._executor.close()

    @contextmanager
    def _statements(self, calls: Sequence[Call]) -> Iterator[None]:
        parents = [self._calls[id(call)] for call in calls if id(call) in self._calls]
        attributes: Attributes = {"db.system.name": connection.vendor}
        if len(calls) > 1:  # the calls of other requests too, recorded or not
            attributes = {**attributes, "db.operation.batch.size": len(calls)}
        with ExitStack() as stack:
            for parent in parents:
                context = set_span_in_context(parent)
                stack.enter_context(
                    span_of(
                        self._export.tracer,
                        "statement",
                        parent=context,
                        kind=SpanKind.CLIENT,
                        attributes=attributes,
                    )
                )
            yield
