"""Targets for the cost of a login: what must be, what is the goal, and whether it is met. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.report import Table

_HEADINGS = ("what", "must", "goal", "measured", "met")
_NONE = "-"


@dataclass(frozen=True, slots=True)
class Target:
    """A limit that must not be exceeded, and a lower one as the goal; or the other way round."""

    what: str
    must: float | None
    goal: float | None
    unit: str = "x"
    is_at_least: bool = False
    decimals: int = 2

    def line(self, measured: float | None) -> tuple[str, ...]:
        """The line of the table; None was not measured."""
        sign = "≥" if self.is_at_least else "≤"
        limits = (
            _NONE if limit is None else f"{sign} {limit:g} {self.unit}"
            for limit in (self.must, self.goal)
        )
        shown = _NONE if measured is None else f"{measured:.{self.decimals}f} {self.unit}"
        return (self.what, *limits, shown, self._verdict(measured))

    def _verdict(self, measured: float | None) -> str:
        if measured is None:
            return _NONE
        for name, limit in (("goal", self.goal), ("must", self.must)):
            if limit is not None and (measured >= limit if self.is_at_least else measured <= limit):
                return name
        return "no"


def table(name: str, measured: Sequence[tuple[Target, float | None]], note: str = "") -> Table:
    """The targets with what was measured of them."""
    return Table(name, _HEADINGS, [target.line(value) for target, value in measured], note)
