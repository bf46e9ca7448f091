"""Better or worse than last week? The same 24 hours of the week before, in numbers and words. Pure.

What a limit throttled is not compared: it leaves no record, only metrics.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

ISSUED = ""  # the reason of a login that got a token
_NOTICED_SHARE = 0.005  # of all logins: half a percentage point
_FEW_TOKENS = 0.8  # of last week's tokens


class Trend(Enum):
    """How a number compares with that of last week."""

    MORE = "more"
    FEWER = "fewer"
    SAME = "same"


class Verdict(Enum):
    """The comparison in one word."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNKNOWN = "unknown"  # no logins last week


@dataclass(frozen=True, slots=True)
class Compared:
    """One number now and a week before."""

    now: int
    before: int

    @property
    def trend(self) -> Trend:
        if self.now == self.before:
            return Trend.SAME
        return Trend.MORE if self.now > self.before else Trend.FEWER

    @property
    def difference(self) -> int:
        """How many more, or fewer, without a sign."""
        return abs(self.now - self.before)

    @property
    def percent(self) -> int | None:
        """The difference in percent of the week before, rounded; None where that had none."""
        return round(100 * self.difference / self.before) if self.before else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Tokens, refusals, and the refusals by who can fix them, the most frequent first."""

    tokens: Compared
    refusals: Compared
    by_fixer: tuple[tuple[str, Compared], ...]

    @property
    def share_now(self) -> float:
        """The part of the logins that is refused now."""
        return _share(self.refusals.now, self.tokens.now)

    @property
    def share_before(self) -> float:
        return _share(self.refusals.before, self.tokens.before)

    @property
    def verdict(self) -> Verdict:
        """Worse: a larger part is refused, or far fewer tokens. Better: a smaller part is refused.

        A part counts as larger or smaller from half a percentage point on.
        """
        if not self.tokens.before + self.refusals.before:
            return Verdict.UNKNOWN
        rise = self.share_now - self.share_before
        if rise >= _NOTICED_SHARE or self.tokens.now < _FEW_TOKENS * self.tokens.before:
            return Verdict.WORSE
        return Verdict.BETTER if rise <= -_NOTICED_SHARE else Verdict.SAME


def compare(now: Counter[str], before: Counter[str], fixed_by: Mapping[str, str]) -> Comparison:
    """The comparison of logins by reason; `fixed_by`: who can fix each reason."""
    people_now, people_before = _by_fixer(now, fixed_by), _by_fixer(before, fixed_by)
    people = sorted(
        people_now.keys() | people_before.keys(),
        key=lambda who: (-people_now[who], -people_before[who], who),
    )
    return Comparison(
        Compared(now[ISSUED], before[ISSUED]),
        Compared(people_now.total(), people_before.total()),
        tuple((who, Compared(people_now[who], people_before[who])) for who in people),
    )


def _by_fixer(logins: Counter[str], fixed_by: Mapping[str, str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for reason, number in logins.items():
        if reason != ISSUED:
            found[fixed_by.get(reason, "")] += number
    return found


def _share(refused: int, issued: int) -> float:
    return refused / (refused + issued) if refused + issued else 0.0
