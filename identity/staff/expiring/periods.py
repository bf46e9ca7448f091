"""Within which time something ends, and how many days are left, in words."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from identity.staff.framework.filters import EXPIRY_DAYS
from identity.staff.framework.record_pages import Text
from taxpayers.facts.validity import is_over

ENDED = "ended"
ENDED_DAYS = 30
DEFAULT = "30"


@dataclass(frozen=True, slots=True)
class Period:
    """From a first moment to before another one; what has ended comes latest first."""

    since: datetime
    before: datetime
    is_past: bool = False


def choices() -> list[tuple[str, Text]]:
    """The name of each period in an address, and its title."""
    within = gettext_lazy("Within {days} days")
    ended = gettext_lazy("Ended in the last {days} days")
    return [
        *((str(days), str(within).format(days=days)) for days in EXPIRY_DAYS),
        (ENDED, str(ended).format(days=ENDED_DAYS)),
    ]


def period_of(name: str, at: datetime) -> Period:
    """The period of that name."""
    if name == ENDED:
        return Period(at - timedelta(days=ENDED_DAYS), at, is_past=True)
    return Period(at, at + timedelta(days=int(name)))


def days_left(end: datetime, at: datetime) -> str:
    """In whole days of the calendar, in words."""
    days = (timezone.localtime(end).date() - timezone.localtime(at).date()).days
    if is_over(end, at):
        return _ended(-days)
    match days:
        case 0:
            return _("today")
        case 1:
            return _("tomorrow")
        case _:
            return ngettext("in {count} day", "in {count} days", days).format(count=days)


def _ended(days: int) -> str:
    match days:
        case 0:
            return _("ended today")
        case 1:
            return _("ended yesterday")
        case _:
            text = ngettext("ended {count} day ago", "ended {count} days ago", days)
            return text.format(count=days)
