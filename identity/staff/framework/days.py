"""Days as staff choose them: whole ones, in the authority's time zone (contract 6)."""

from datetime import UTC, date, datetime, time

from django.utils import timezone


def first_moment(day: date) -> datetime:
    """The first moment of the day."""
    return _aware(datetime.combine(day, time.min))


def last_moment(day: date) -> datetime:
    """The last moment of the day."""
    # Where clocks go back over midnight, a day's last moment comes twice: fold=1 is the later.
    return _aware(datetime.combine(day, time.max.replace(fold=1)))


def _aware(value: datetime) -> datetime:
    return value.replace(tzinfo=timezone.get_default_timezone()).astimezone(UTC)
