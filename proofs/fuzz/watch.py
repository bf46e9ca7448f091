"""The service as seen by its operator: its processes, their memory and its log."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from bench.processes import private_bytes
from proofs.fuzz.planted import Planted
from tests.servers.processes import children_of

_FAULTY = (
    *(b"Traceback (most recent call last)", b'"traceback"', b"Fatal Python error"),
    b'"login failed"',
)
# Causes of a 503, on a machine that is too busy for the database to answer in time: also too many
# logins at once of the one client that all inputs have.
_TOO_BUSY = re.compile(
    rb"lanes\.(?:TooLate|Overloaded): |(?:NoConnection|SentTooLate): it is too late"
)
_AT_ONCE = 8 * 1024 * 1024


class Watch:
    """Looks at the service again and again; each look returns what is wrong since the last."""

    def __init__(self, pid: int, log_file: Path, planted: Planted) -> None:
        self._pid = pid
        self._log_file = log_file
        self._marks = planted.marks
        self._offset = log_file.stat().st_size
        self.too_busy = 0  # lines about a 503 because the machine was too busy
        self.workers = sorted(children_of(pid))

    def look(self) -> list[str]:
        return [*self._faults_of_processes(), *self._faults_of_log()]

    def private_megabytes(self) -> list[float]:
        return [private_bytes(pid) / 2**20 for pid in self.workers]

    def _faults_of_processes(self) -> list[str]:
        try:
            os.kill(self._pid, 0)
            present = sorted(children_of(self._pid))
        except (ProcessLookupError, FileNotFoundError):
            return ["the service has ended"]
        if present == self.workers:
            return []
        before, self.workers = self.workers, present
        return [f"the workers were {before} and are {present}"]

    def _faults_of_log(self) -> list[str]:
        faults: list[str] = []
        with self._log_file.open("rb") as log:
            log.seek(self._offset)
            while data := log.read(_AT_ONCE):
                whole = data[: data.rfind(b"\n") + 1] or data  # a line may be half written
                self._offset += len(whole)
                log.seek(self._offset)
                faults += self._faults_in(whole)
                if whole is not data and len(data) < _AT_ONCE:
                    break
        return faults

    def _faults_in(self, lines: bytes) -> Iterator[str]:
        if _TOO_BUSY.search(lines):
            others = [line for line in lines.splitlines(True) if not _TOO_BUSY.search(line)]
            self.too_busy += len(lines.splitlines()) - len(others)
            lines = b"".join(others)
        for mark in (*_FAULTY, *self._marks):
            if mark in lines:
                yield f"the log has {mark!r}: {_line_with(mark, lines)!r}"


def _line_with(mark: bytes, data: bytes) -> bytes:
    at = data.index(mark)
    return data[data.rfind(b"\n", 0, at) + 1 :].partition(b"\n")[0][:8_000]
