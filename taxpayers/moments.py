"""Moments and whole days in the authority's time zone, `TIME_ZONE` (contract 6)."""

from datetime import UTC, date, datetime, time

from django.utils import timezone


def format_moment(moment: datetime) -> str:
    """The moment as plain text for people: in the authority's time zone, to the minute."""
    return f"{timezone.localtime(moment):%Y-%m-%d %H:%M}"


def start_of_day(day: date) -> datetime:
    """The first moment of the day, in UTC. Raises OverflowError outside the calendar."""
    return to_utc(datetime.combine(day, time.min))


def end_of_day(day: date) -> datetime:
    """The last moment of the day, in UTC. Raises OverflowError outside the calendar."""
    # Where clocks go back over midnight, a day's last moment comes twice: fold=1 is the later.
    return to_utc(datetime.combine(day, time.max.replace(fold=1)))


def to_utc(moment: datetime) -> datetime:
    """The moment in UTC; without a time zone it is in the authority's. Raises OverflowError."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.get_default_timezone())
    return moment.astimezone(UTC)
