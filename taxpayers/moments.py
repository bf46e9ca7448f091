"""Moments and whole days in the authority's time zone (contract 6)."""

from datetime import UTC, date, datetime, time

from django.utils import timezone


def start_of_day(day: date) -> datetime:
    """The first moment of the day in the authority's time zone; in UTC."""
    return _in_utc(datetime.combine(day, time.min))


def end_of_day(day: date) -> datetime:
    """The last moment of the day in the authority's time zone; in UTC."""
    # Where clocks go back over midnight, a day's last moment comes twice: fold=1 is the later.
    return _in_utc(datetime.combine(day, time.max.replace(fold=1)))


def format_moment(moment: datetime) -> str:
    """The moment to the minute, in the authority's time zone: `2027-12-31 23:59`."""
    return f"{timezone.localtime(moment):%Y-%m-%d %H:%M}"


def _in_utc(local: datetime) -> datetime:
    return local.replace(tzinfo=timezone.get_default_timezone()).astimezone(UTC)
