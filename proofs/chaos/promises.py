"""What a scenario promises, and whether it holds by what clients saw and what is stored. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from proofs.chaos.answers import Answer

UNAVAILABLE = 503
# What a machine that does other things as well may add to a time.
ROOM_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Promise:
    """What holds for a scenario, in seconds and numbers."""

    recovers_within: float = 2.0  # from the end of the fault to the last refusal of an honest login
    answers_within: float = 2.0  # the slowest answer of all
    # Whether an honest login may get no token, or any login a 503: not while the database answers
    # and no node is overloaded.
    may_refuse: bool = True
    # Logins that were told 503, or nothing, and that are stored as issued all the same.
    never_received: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that a scenario left behind. Ids are those of login events."""

    answers: Sequence[Answer]
    honest: frozenset[str]  # callers that get a token unless the service is out of order
    began_at: float
    ended_at: float  # the end of the fault: from here on the service must recover by itself
    issued: frozenset[str]  # all that are stored as issued
    new: frozenset[str]  # those of them that were stored since the scenario began
    forbidden: Mapping[str, float]  # from when on a caller must get no token for what it sends
    notes: Sequence[str]

    @property
    def received(self) -> set[str]:
        """The ids of the tokens that clients hold: their records must be there."""
        return {a.reference for a in self.answers if a.token}

    @property
    def refused_honest(self) -> list[Answer]:
        return [a for a in self.answers if a.caller in self.honest and not a.token]

    @property
    def recovery_seconds(self) -> float:
        """From the end of the fault to the last honest login that got no token."""
        last = max((a.answered_at for a in self.refused_honest), default=self.ended_at)
        return max(0.0, last - self.ended_at)

    @property
    def slowest(self) -> float:
        """Of the answers since the fault began: before, a node may have been prepared for it."""
        since = (a.seconds for a in self.answers if a.answered_at >= self.began_at)
        return max(since, default=0.0)

    @property
    def never_received(self) -> set[str]:
        """Stored as issued, and no client has the token."""
        return set(self.new) - {answer.reference for answer in self.answers if answer.token}


def broken_promises(promise: Promise, seen: Observed) -> list[str]:
    """Each promise that was broken, in words; empty if none was."""
    return [*_of_answers(promise, seen), *_of_honest_logins(promise, seen), *_vacuous(seen)]


def _of_answers(promise: Promise, seen: Observed) -> Iterator[str]:
    if lost := seen.received - seen.issued:
        yield f"{len(lost)} tokens without a login event, such as {min(lost)}"
    for caller, since in seen.forbidden.items():
        sent = (a for a in seen.answers if a.caller == caller and a.sent_at >= since)
        tokens = [answer for answer in sent if answer.token]
        if tokens:
            yield f"{len(tokens)} forbidden tokens of {caller}, such as {tokens[0].reference}"
    for fault, count in Counter(a.fault for a in seen.answers if a.fault).items():
        yield f"{count} answers that are not the contract's: {fault}"
    if seen.slowest > promise.answers_within + ROOM_SECONDS:
        yield f"an answer after {seen.slowest:.1f} s, not within {promise.answers_within:g} s"


def _of_honest_logins(promise: Promise, seen: Observed) -> Iterator[str]:
    took = seen.recovery_seconds
    if took > promise.recovers_within + ROOM_SECONDS:
        yield f"honest logins refused for {took:.1f} s more, not {promise.recovers_within:g} s"
    refused = Counter(
        (a.caller, a.status)
        for a in seen.answers
        if a.status == UNAVAILABLE or (a.caller in seen.honest and not a.token)
    )
    if refused and not promise.may_refuse:
        yield f"{refused.total()} logins refused, where none may be: {dict(refused)}"
    others = [a.status for a in seen.refused_honest if a.status != UNAVAILABLE]
    if others:
        yield f"honest logins were answered with {sorted(set(others))}"
    count = len(seen.never_received)
    if count > promise.never_received:
        yield f"{count} logins stored as issued that got no token, not {promise.never_received}"


def _vacuous(seen: Observed) -> Iterator[str]:
    """A scenario without a login shows nothing."""
    honest = [a for a in seen.answers if a.token and a.caller in seen.honest]
    if not any(a.answered_at < seen.began_at for a in honest):
        yield "no honest login before the fault"
    callers = {a.caller for a in honest if a.sent_at > seen.ended_at}
    if missing := seen.honest - callers:
        yield f"no login after the fault by {', '.join(sorted(missing))}"
