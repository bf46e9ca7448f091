"""Moments and whole days in the authority's time zone, `TIME_ZONE` (contract 6)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import MAXYEAR, UTC, date, datetime, time

from django.utils import formats, timezone

_IS_FOR_A_PAGE = ContextVar("moments_for_a_page", default=False)


@contextmanager
def moments_for_a_page() -> Iterator[None]:
    """Meanwhile texts, also those of services, say moments as the pages do."""
    token = _IS_FOR_A_PAGE.set(True)
    try:
        yield
    finally:
        _IS_FOR_A_PAGE.reset(token)


def format_moment(moment: datetime) -> str:
    """The moment in a text, as `2026-11-21 18:00+08:00`; for a page as `moment_text`."""
    if _IS_FOR_A_PAGE.get():
        return moment_text(moment)
    return timezone.localtime(moment).isoformat(" ", "minutes")


def moment_text(moment: datetime) -> str:
    """The moment for people, as `21 Nov 2026, 18:00`, in the active language."""
    return formats.date_format(timezone.localtime(moment), "j M Y, H:i")


def exact_text(moment: datetime) -> str:
    """The moment for programs: in UTC, and exact (RFC 3339)."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def start_of_day(day: date) -> datetime:
    """The first moment of the day, in UTC. Raises OverflowError outside the calendar."""
    return to_utc(datetime.combine(day, time.min))


def end_of_day(day: date) -> datetime:
    """The last moment of the day, in UTC. Raises OverflowError outside the calendar."""
    # Where clocks go back over midnight, a day's last moment comes twice: fold=1 is the later.
    return to_utc(datetime.combine(day, time.max.replace(fold=1)))


def a_year_after(moment: datetime) -> datetime:
    """The last moment of the same day a year later; of 29 February it is 28 February."""
    day = timezone.localtime(moment).date()
    year = min(day.year + 1, MAXYEAR)
    is_leap_day = (day.month, day.day) == (2, 29)
    return end_of_day(day.replace(year=year, day=28 if is_leap_day else day.day))


def to_utc(moment: datetime) -> datetime:
    """The moment in UTC; without a time zone it is in the authority's. Raises OverflowError."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.get_default_timezone())
    return moment.astimezone(UTC)


def parse_moment(text: str, of_day: Callable[[date], datetime]) -> datetime:
    """A moment in ISO 8601, or `of_day` of a day; in UTC. Raises ValueError, or OverflowError."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        moment = to_utc(datetime.fromisoformat(text))
    else:
        moment = of_day(day)
    timezone.localtime(moment)
    return moment
