"""The service with a stopwatch at each hop, for `make profile` alone.

CPU time is that of the thread, so threads that wait for each other do not count for each other.
"""

import importlib
import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from time import thread_time_ns
from typing import Any

from bench.hops import HOPS
from identity.wsgi import application as service

_WRITE_EVERY, _WRITE_EARLY = 200, (5, 20, 80)
_FOLDER = Path(os.environ["BENCH_HOPS"])


class _Times(threading.local):
    """CPU nanoseconds of this thread by hop. On the stack: what the open calls' own calls took."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, int] = defaultdict(int)
        self.inner = [0]
        self.logins = 0


_times = _Times()


def _timed(function: Callable[..., Any], hop: str) -> Callable[..., Any]:
    @wraps(function)
    def measured(*args: Any, **kwargs: Any) -> Any:
        times = _times
        times.inner.append(0)
        started = thread_time_ns()
        try:
            return function(*args, **kwargs)
        finally:
            took = thread_time_ns() - started
            times.spent[hop] += took - times.inner.pop()
            times.inner[-1] += took

    return measured


def _install(name: str, hop: str) -> None:
    """Puts the stopwatch round that function, wherever it was imported to."""
    module_name, _, path = name.partition(":")
    owner: Any = importlib.import_module(module_name)
    *outer, last = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    function = getattr(owner, last)
    measured = _timed(function, hop)
    setattr(owner, last, measured)
    for module in list(sys.modules.values()):
        for attribute, value in list(vars(module).items()):
            if value is function:
                setattr(module, attribute, measured)


def _keep() -> None:
    times = _times
    if times.logins % _WRITE_EVERY and times.logins not in _WRITE_EARLY:
        return
    kept = {"logins": times.logins, "nanoseconds": times.spent}
    file = _FOLDER / f"{os.getpid()}-{threading.get_ident()}.json"
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(kept), encoding="utf-8")
    fresh.replace(file)


for _hop, _names in HOPS.items():
    for _name in _names:
        _install(_name, _hop)
_service = _timed(service, "Django")


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
    """The service itself; what it did is written down now and then."""
    _times.logins += 1
    _keep()
    return _service(environ, start_response)
