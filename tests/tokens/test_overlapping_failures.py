"""Processes that count the same callers at the same moment do not deadlock: really at once."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest

from tests.lanes.calls import failed, rejected
from tests.support.databases import present_url
from tokens.calls import FailedLogin, RejectedRequest
from tokens.models import FailureBucket, LoginEvent
from tokens.store.postgresql import statement_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

SESSIONS, CALLERS, IN_A_BATCH = 2, 800, 40
# So often a bucket may fail without a pause: then every failure is stored.
ROUNDS = 10 // SESSIONS
# Found after a tenth of a second, not after PostgreSQL's one.
OPTIONS = "-c deadlock_timeout=100ms"


Kind = Callable[[int], FailedLogin | RejectedRequest]


each_kind = pytest.mark.parametrize(
    ("kind", "buckets"), [(failed, 2), (rejected, 1)], ids=["failed", "rejected"]
)


def count_together(kind: Kind, numbers: Sequence[int]) -> None:
    """All sessions count these callers, each in another order; raises their errors."""
    begin = threading.Barrier(SESSIONS)

    def count(order: Sequence[int]) -> None:
        with psycopg.connect(present_url(), autocommit=True, options=OPTIONS) as session:
            for _ in range(ROUNDS):
                statement = statement_for([kind(number) for number in order])
                begin.wait(30)
                session.execute(statement.sql.encode(), statement.parameters)

    def count_or_stop(order: Sequence[int]) -> None:
        with suppress(threading.BrokenBarrierError):  # the other one has failed
            try:
                count(order)
            except psycopg.Error:
                begin.abort()
                raise

    with ThreadPoolExecutor(SESSIONS) as threads:
        for done in [threads.submit(count_or_stop, order) for order in orders(numbers)]:
            done.result(60)


def orders(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for number in range(SESSIONS):
        yield numbers if number % 2 else numbers[::-1]


@each_kind
def test_batches_in_opposite_orders_count_each_caller_once(kind: Kind, buckets: int) -> None:
    for first in range(0, CALLERS, IN_A_BATCH):  # others each time, so that none has to wait
        count_together(kind, range(first, first + IN_A_BATCH))
    assert LoginEvent.objects.count() == CALLERS * ROUNDS * SESSIONS
    failures = list(FailureBucket.objects.values_list("failures", flat=True))
    assert failures == [ROUNDS * SESSIONS] * CALLERS * buckets
