"""Which statements a piece of code sends, what they read, and how many functions it calls."""

import gc
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext


@contextmanager
def statements_sent() -> Iterator[list[str]]:
    """The first word of each statement, once the block has ended.

    The test's own transaction is around them, so a transaction of theirs is a SAVEPOINT.
    """
    words: list[str] = []
    with CaptureQueriesContext(connection) as context:
        yield words
    words += [query["sql"].split()[0] for query in context.captured_queries]


def rows_read_by(work: Callable[[], object]) -> list[int]:
    """For each query of it, how many rows that step of its plan has read that reads the most."""
    with CaptureQueriesContext(connection) as sent:
        work()
    return [max(map(_rows_read, _explained(query["sql"]))) for query in sent.captured_queries]


def tables_read_by(sql: str, parameters: Any) -> set[str]:
    """The tables of which such a statement reads a page, of the table or of an index."""
    return {
        step["Relation Name"]
        for step in _explained(sql, parameters)
        if "Relation Name" in step and step["Shared Hit Blocks"] + step["Shared Read Blocks"]
    }


def _explained(sql: str, parameters: Any = None) -> list[dict[str, Any]]:
    """Each step of its plan, with what the step did: the statement is executed."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", parameters)
        (answer,) = cursor.fetchone() or ("[]",)
    (explained,) = json.loads(answer) if isinstance(answer, str) else answer
    return _steps_of(explained["Plan"])


def _rows_read(step: dict[str, Any]) -> int:
    left_out = (f"Rows Removed by {why}" for why in ("Filter", "Index Recheck"))
    rows = step["Actual Rows"] + sum(step.get(name, 0) for name in left_out)
    return int(rows * step["Actual Loops"])


def _steps_of(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(step for inner in plan.get("Plans", ()) for step in _steps_of(inner))]


def calls_of(work: Callable[..., Any], *arguments: Any) -> int:
    """How many functions of Python and of C the work calls, once it is warm."""
    work(*arguments)
    count = 0

    def see(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # nothing that others left is finished meanwhile
    sys.setprofile(see)
    try:
        work(*arguments)
    finally:
        sys.setprofile(None)
        gc.enable()
    return count
