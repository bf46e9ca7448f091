"""What breaks, as code meets it: no mock stands for a database, but its connection fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connection


@contextmanager
def database_out_of_reach() -> Iterator[None]:
    """Every query of this thread fails as it does when the server is gone."""

    def fail(*_arguments: Any) -> Any:
        raise OperationalError("server at 10.1.2.3 closed the connection unexpectedly")

    with connection.execute_wrapper(fail):
        yield
