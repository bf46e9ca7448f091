"""Which statements a piece of code sends, in a form that tests compare."""

from collections.abc import Iterator
from contextlib import contextmanager

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
