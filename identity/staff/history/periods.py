"""Periods that auditors ask for, as whole days of the authority's calendar. Pure."""

from dataclasses import dataclass
from datetime import date, timedelta

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Period:
    """From the first day to the last one, both included."""

    first: date
    last: date


def month(today: date, back: int = 0) -> Period:
    """The month of this day, or an earlier one, `back` months before."""
    return _months(today.year, today.month - back, 1)


def quarter(today: date, back: int = 0) -> Period:
    """The quarter of this day, or an earlier one."""
    begins = (today.month - 1) // 3 * 3 + 1
    return _months(today.year, begins - 3 * back, 3)


def year(today: date) -> Period:
    """The calendar year of this day."""
    return _months(today.year, 1, 12)


def _months(year: int, month: int, count: int) -> Period:
    return Period(_first(year, month), _first(year, month + count) - _DAY)


def _first(year: int, month: int) -> date:
    """The first day of the month; months before 1 and after 12 are those of other years."""
    years, month = divmod(month - 1, 12)
    return date(year + years, month + 1, 1)
