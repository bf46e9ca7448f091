"""A part of a run in a separate process, with limits, and none of it left at its end."""

import contextlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import pytest

TIME_IS_OVER = 99
_MAX_BYTES = 4 << 30  # that are written to: an endless loop may fill a list
BROKEN = 3  # as pytest's INTERNAL_ERROR


@dataclass(frozen=True, slots=True)
class Limits:
    """For one run: seconds of the processor, and seconds of the clock on a machine that is busy."""

    cpu_seconds: int = 300
    seconds: int = 1500

    @classmethod
    def after(cls, unchanged: float) -> "Limits":
        """Enough for a mutant, when the tests without one took so many seconds of the processor."""
        cpu_seconds = ceil(2 + 4 * unchanged)
        return cls(cpu_seconds, 30 + 5 * cpu_seconds)


GENEROUS = Limits()


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit status of a fork, negative for a signal, and what it cost the processor."""

    status: int
    cpu_seconds: float

    @property
    def is_timeout(self) -> bool:
        return self.status < 0 or self.status == TIME_IS_OVER


def run_in_fork(run: Callable[[], int], limits: Limits = GENEROUS) -> Ended:
    """Forks this process; the fork ends with what `run` returns, and so does all it has started."""
    child = start_fork(run, limits)
    try:
        _, status, usage = os.wait4(child, 0)
    finally:
        end_group(child)
    return Ended(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)


def start_fork(run: Callable[[], int], limits: Limits | None = None) -> int:
    """The id of the fork, which leads its own group of processes."""
    child = os.fork()
    if child:
        return child
    status = BROKEN
    try:
        os.setpgid(0, 0)
        if limits is not None:
            _limit(limits)
        status = run()
    except pytest.exit.Exception as stopped:
        status = BROKEN if stopped.returncode is None else stopped.returncode
    except BaseException:  # noqa: BLE001 - whatever it is, it ends this process
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def end_group(child: int) -> None:
    """Whatever the tests have started and not ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _limit(limits: Limits) -> None:
    signal.signal(signal.SIGXCPU, _stop)
    signal.signal(signal.SIGALRM, _stop)
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 5))
    # Not the whole address space: each file of local facts takes a GiB of that and no memory.
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES, _MAX_BYTES))
    signal.alarm(limits.seconds)


def _stop(signum: int, frame: object) -> None:
    """The tests clean up after themselves; what does not stop is killed a little later."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(10)
    pytest.exit("the time is over", returncode=TIME_IS_OVER)
