"""A run: so many inputs against a running service, and what was wrong."""

import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from proofs.fuzz.corpus import FuzzInput, Kind, read_corpus, write_inputs
from proofs.fuzz.grammar import Grammar
from proofs.fuzz.invariants import faults_of
from proofs.fuzz.mutations import mutate, split
from proofs.fuzz.planted import Planted
from proofs.fuzz.traffic import Sent, Traffic
from proofs.fuzz.watch import Watch
from tests.servers.service import Service
from tests.servers.wire import WireAnswer

CANARY_EVERY = 200
PROGRESS_EVERY = 50_000
_FRAMED_SHARE = 0.7
_OPEN_SHARE = 0.003  # of those that are not framed, in the first half
_MAX_FAILURES = 20
_WARM_UP_SHARE = 0.1  # after it the memory is measured that must not grow
MAX_GROWTH_MEGABYTES = 40.0
_RECENT = 2_000  # the log names no input: these may be the cause
# A canary may meet a 503 on a machine that is too busy; not more of them than this.
_MAX_UNAVAILABLE_SHARE = 0.02


@dataclass
class Findings:
    seed: int
    sent: int = 0
    canaries: int = 0
    unavailable: int = 0  # of the canaries
    tokens: int = 0
    too_busy: int = 0  # 503 because the machine was
    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    memory_before: list[float] = field(default_factory=list)
    memory_after: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        listed = ", ".join(
            f"{status}: {count:,}" for status, count in sorted(self.statuses.items())
        )
        before, after = (
            ", ".join(f"{megabytes:.1f}" for megabytes in memory)
            for memory in (self.memory_before, self.memory_after)
        )
        return (
            f"seed {self.seed}: {self.sent:,} inputs in {self.seconds:.0f} s"
            f" ({self.sent / max(self.seconds, 0.001):,.0f}/s)\n"
            f"answers: {listed}; tokens {self.tokens:,}\n"
            f"right logins {self.canaries:,}, answered with 503 {self.unavailable};"
            f" 503 because this machine was too busy {self.too_busy}\n"
            f"private memory of the workers, MB: {before} after {_WARM_UP_SHARE:.0%},"
            f" {after} at the end\nfailures: {len(self.failures)}"
        )


def random_inputs(rng: Random, planted: Planted, count: int) -> Iterator[FuzzInput]:
    """The corpus first, then so many in all, by chance."""
    grammar, corpus = Grammar(rng, planted), read_corpus(planted)
    yield from corpus[:count]
    seeds = [one.data for one in corpus]
    for number in range(len(corpus), count):
        if number % CANARY_EVERY == 0:
            yield grammar.canary()
        elif rng.random() < _FRAMED_SHARE:
            yield grammar.framed()
        else:
            # They wait for deadlines, so not among the last.
            is_open = rng.random() < _OPEN_SHARE and number < count / 2
            yield _mutated(rng, grammar, seeds, is_open=is_open)


def _mutated(rng: Random, grammar: Grammar, seeds: list[bytes], *, is_open: bool) -> FuzzInput:
    data = rng.choice(seeds) if rng.random() < 0.5 else grammar.framed().data
    if rng.random() < 0.15:  # several requests, one after the other
        data += b"".join(rng.choice(seeds) for _ in range(rng.choice((1, 2, 5))))
    data = mutate(rng, data, rng.choice(seeds))
    return FuzzInput(split(rng, data), Kind.OPEN if is_open else Kind.ENDED)


class Run:
    """Sends inputs and judges what comes back; failures are stored in `failures_file`."""

    def __init__(self, service: Service, planted: Planted, seed: int, failures_file: Path) -> None:
        self.findings = Findings(seed)
        self._port = int(service.environment["PORT"])
        self._watch = Watch(service.pid, service.log_file, planted)
        self._planted = planted
        self._file = failures_file
        self._recent: deque[FuzzInput] = deque(maxlen=_RECENT)
        self._progress_at = PROGRESS_EVERY

    def run(self, inputs: Iterator[FuzzInput], count: int, minutes: float) -> Findings:
        self._began = time.monotonic()
        self._ends_at, self._warm_up = self._began + minutes * 60, int(count * _WARM_UP_SHARE)
        rng = Random(self.findings.seed + 1)  # noqa: S311 - of addresses
        Traffic(self._port, self._counted(inputs), self._judge, self._fail, rng).run(self._look)
        self._look()
        found = self.findings
        found.memory_after = self._watch.private_megabytes()
        if found.canaries and found.unavailable > 1 + found.canaries * _MAX_UNAVAILABLE_SHARE:
            found.failures.append(f"{found.unavailable} right logins were answered with 503")
        for before, after in zip(found.memory_before, found.memory_after, strict=False):
            if after > before + MAX_GROWTH_MEGABYTES:
                found.failures.append(f"a worker grew from {before:.1f} to {after:.1f} MB")
        return found

    def _counted(self, inputs: Iterator[FuzzInput]) -> Iterator[FuzzInput]:
        for one in inputs:
            if time.monotonic() > self._ends_at:
                return
            self.findings.sent += 1
            self._recent.append(one)
            yield one

    def _judge(self, one: FuzzInput, answer: WireAnswer, sent: Sent) -> None:
        found = self.findings
        found.statuses[answer.status] += 1
        found.canaries += one.is_canary
        found.unavailable += one.is_canary and answer.status == 503
        found.tokens += b'"access_token"' in answer.body
        for fault in faults_of(one, answer, self._planted):
            shown = f"answer {answer.status} {answer.reason}: {answer.body[:300]!r}"
            self._fail(one, f"{fault}; {shown}", sent)

    def _look(self) -> bool:
        found = self.findings
        found.seconds = time.monotonic() - self._began
        if found.sent >= self._progress_at:
            self._progress_at = found.sent + PROGRESS_EVERY
            sys.stderr.write(f"{found.sent:,} inputs, {found.seconds:.0f} s\n")
        if not found.memory_before and found.sent >= self._warm_up:
            found.memory_before = self._watch.private_megabytes()
        faults = self._watch.look()
        found.too_busy = self._watch.too_busy
        if faults:
            write_inputs(self._file, self._recent, self._planted)
            self._recent.clear()
            found.failures += faults
        return len(found.failures) < _MAX_FAILURES

    def _fail(self, one: FuzzInput, fault: str, sent: Sent) -> None:
        """What was sent on the same connection is stored with it, for it may be the cause."""
        found = self.findings
        connection = f"{found.seed}-{len(found.failures)}" if len(sent) > 1 else ""
        stored = [
            replace(
                other,
                name=fault[:60] if other is one else other.name or "on the same connection",
                connection=connection,
            )
            for other in sent
        ]
        write_inputs(self._file, stored, self._planted)
        parts = ", ".join(repr(self._planted.blank(part)) for part in one.parts)
        found.failures.append(
            f"seed {found.seed}, {one.way}: {fault}\n  {parts}\n  stored in {self._file}"
        )
