"""One connection of a client: its answers in order, its deadlines and its end (RFC 9112)."""

import asyncio
from functools import partial
from typing import Any

from identity.server import answers, limits
from identity.server.exchange import Exchange
from identity.server.overload import (
    LIVE,
    MAX_WAIT_SECONDS,
    StartQueue,
    connection_limit,
    refuse_overload,
)
from identity.server.request_reader import Awaited, RequestReader
from tokens.answers.response import Answer


class Connection(RequestReader):
    def __init__(self, queue: StartQueue, *args: Any) -> None:
        super().__init__(*args)
        self.start_queue = queue
        self.current: Exchange | None = None  # the one that the application works on
        self.waiting: list[Exchange] = []  # pipelined behind it
        self.last: Answer | None = None  # to be written after those
        self.idle_deadline = self.close_deadline = self.write_deadline = 0.0
        self.unsent_bytes = 0  # when the deadlines were last enforced
        self.is_lingering = self.is_stopping = False

    # --- The connection ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self.has_place = len(self.connections) <= connection_limit()
        seconds = limits.IDLE_SECONDS if self.has_place else limits.IDLE_SECONDS_WHEN_FULL
        self.idle_deadline = self.loop.time() + seconds

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self)
        self.ignores_input = True
        for exchange in (self.current, self.cycle):
            if exchange is not None and not exchange.response_complete:
                exchange.disconnect()
        self.waiting.clear()
        self.flow.resume_writing()
        self.parser = None  # type: ignore[assignment]

    def eof_received(self) -> bool:  # type: ignore[override]
        """Returns whether the connection stays open, for the answers that are still to come."""
        if self.is_lingering:
            return False
        if self.last is not None:
            return True
        if self.awaited is not Awaited.NOTHING:
            self.refuse(answers.malformed("the connection ended before it was complete"))
            return True
        if self.cycle is None or self.cycle.response_complete:
            return False
        self.cycle.keep_alive = False
        return True

    def shutdown(self) -> None:
        """The server stops: an idle connection may bring one more request before it ends."""
        self.is_stopping = True
        soon = self.loop.time() + limits.IDLE_SECONDS_WHEN_STOPPING
        self.idle_deadline = min(self.idle_deadline, soon) if self.current is None else soon

    def may_stay_open(self) -> bool:
        """Whether the answer that is written next may be followed by another request."""
        return bool(self.waiting) or (not self.is_stopping and self.has_place)

    # --- Answers ----------------------------------------------------------------------------------

    def may_pipeline(self) -> bool:
        """Whether another request may come before the last one is answered."""
        return len(self.waiting) < limits.MAX_PIPELINED

    def offer(self, exchange: Exchange) -> None:
        """The application may begin with it, after those before it."""
        if self.current is exchange or exchange in self.waiting:
            return
        if self.current is None:
            self._enqueue(exchange)
        else:
            self.waiting.append(exchange)
            self.flow.pause_reading()

    def _enqueue(self, exchange: Exchange) -> None:
        self.current = exchange
        exchange.started_at = self.loop.time()
        self.start_queue.add(partial(self._start, exchange))

    def _start(self, exchange: Exchange) -> None:
        has_place = self.has_place and self.loop.time() < exchange.started_at + MAX_WAIT_SECONDS
        is_admitted = has_place or exchange.scope["path"] == LIVE
        application = self.app if is_admitted else refuse_overload
        task = self.loop.create_task(exchange.run(application))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_exchange_complete(self, exchange: Exchange) -> None:
        self.server_state.total_requests += 1
        self.current = None
        if self.transport.is_closing():
            return
        if self.waiting and exchange.keep_alive:
            self._enqueue(self.waiting.pop(0))
        elif self.last is not None:
            self.write_last(self.last)
        elif not exchange.keep_alive:
            self.linger()
        else:
            self.idle_deadline = self.loop.time() + limits.IDLE_SECONDS
            self.flow.resume_reading()

    def refuse(self, answer: Answer) -> None:
        """Answer what cannot be read, after those before it, and close."""
        if self.is_lingering:
            return
        self.ignores_input = True
        faulty = self.cycle if self.awaited is Awaited.BODY else None
        if faulty is not None and faulty.response_started:
            self.linger()  # it has its answer
        elif faulty is not None and faulty is self.current:
            faulty.disconnect()
            faulty.write_last(answer)
        else:
            if faulty in self.waiting:
                self.waiting.remove(faulty)
            self.last = answer
            if self.current is None:
                self.write_last(answer)

    def write_last(self, answer: Answer) -> None:
        """Write this answer, and nothing after it."""
        self.write(answer, closes=True)
        self.linger()

    def write(self, answer: Answer, *, closes: bool, has_body: bool = True) -> None:
        """Write this answer, at once with its head."""
        head = answers.head_of(answer, self.server_state.default_headers, closes=closes)
        self.transport.write(head + answer.body if has_body else head)

    def linger(self) -> None:
        """Close, but let the client read the last answer first."""
        if self.is_lingering or self.transport.is_closing():
            return
        self.is_lingering = self.ignores_input = True
        self.close_deadline = self.loop.time() + limits.LINGER_SECONDS
        self.flow.resume_reading()
        self.transport.write_eof()

    def abort(self) -> None:
        """Close at once, with a reset if something is unsent."""
        self.transport.abort()

    # --- Deadlines --------------------------------------------------------------------------------

    def enforce_deadlines(self, now: float) -> None:
        """Called about twice a second for every connection: cheaper than its own timers."""
        unsent = self.transport.get_write_buffer_size()
        if unsent or self.unsent_bytes:
            self._enforce_reading_of_answers(unsent, now)
        elif self.is_lingering or self.transport.is_closing():
            self._close_after(self.close_deadline, now)
        elif self.flow.read_paused:
            self.read_deadline = max(self.read_deadline, now + limits.BODY_SECONDS)
            self._enforce_answer(now)
        elif self.awaited is not Awaited.NOTHING:
            self._enforce_request(now)
        elif self.current is not None:
            self._enforce_answer(now)
        else:
            self._close_after(self.idle_deadline, now)

    def _enforce_reading_of_answers(self, unsent: int, now: float) -> None:
        if unsent != self.unsent_bytes:
            self.unsent_bytes, self.write_deadline = unsent, now + limits.WRITE_SECONDS
            self.close_deadline = now + limits.LINGER_SECONDS
        elif now > self.write_deadline:
            self.transport.abort()

    def _enforce_request(self, now: float) -> None:
        if now > self.read_deadline:
            part = "headers" if self.awaited is Awaited.HEADERS else "body"
            self.refuse(
                answers.malformed(f"its {part} took too long to arrive", answers.REQUEST_TIMEOUT)
            )

    def _enforce_answer(self, now: float) -> None:
        exchange = self.current
        if exchange is None or exchange.response_started:
            return
        if now > exchange.started_at + limits.ANSWER_SECONDS:
            exchange.disconnect()
            exchange.write_last(answers.unavailable())

    def _close_after(self, deadline: float, now: float) -> None:
        if now > deadline:
            self.transport.close()
