"""When permissions are valid, as bars over one axis of time, each with the same in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from identity.staff.display import moment_text
from identity.staff.framework.badges import facts_of
from taxpayers.models import GrantedPermission

WIDTH = 1000  # of the drawing, which is as wide as its place
_MARGIN = 0.04  # of the axis, before the first and after the last moment
_SHORTEST = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the axis: where it starts, and how wide it is."""

    x: int
    width: int


@dataclass(frozen=True, slots=True)
class TimeBar:
    """One permission: how long it was to be valid, how long it is, and the moment `at`."""

    planned: Span
    valid: Span | None  # None: it was revoked before its first moment
    at: int
    is_revoked: bool
    text: str


def time_bars(permissions: Iterable[GrantedPermission], at: datetime) -> list[TimeBar]:
    """A bar for each; all have the same axis, so that they can be compared."""
    rows = list(permissions)
    if not rows:
        return []
    moments = [at]
    for row in rows:
        moments += [end for end in (row.valid_from, row.valid_until, row.revoked_at) if end]
    axis = _Axis(min(moments), max(moments))
    return [_bar(row, axis, at) for row in rows]


@dataclass(frozen=True, slots=True)
class _Axis:
    first: datetime
    last: datetime

    def x(self, moment: datetime | None) -> int:
        """Where the moment is; None, no end, is the right edge."""
        if moment is None:
            return WIDTH
        length = max(self.last - self.first, _SHORTEST)
        share = _MARGIN + (1 - 2 * _MARGIN) * ((moment - self.first) / length)
        return round(share * WIDTH)

    def span(self, start: datetime, end: datetime | None) -> Span:
        x = self.x(start)
        return Span(x, max(self.x(end) - x, 1))


def _bar(row: GrantedPermission, axis: _Axis, at: datetime) -> TimeBar:
    end = facts_of(row).ended_at
    is_revoked = row.revoked_at is not None and row.revoked_at == end
    was_ever_valid = end is None or end > row.valid_from
    return TimeBar(
        planned=axis.span(row.valid_from, row.valid_until),
        valid=axis.span(row.valid_from, end) if was_ever_valid else None,
        at=axis.x(at),
        is_revoked=is_revoked,
        text=_text(row, is_revoked),
    )


def _text(row: GrantedPermission, is_revoked: bool) -> str:
    """The bar in words."""
    start = moment_text(row.valid_from)
    until = moment_text(row.valid_until) if row.valid_until else ""
    if is_revoked and row.revoked_at is not None:
        revoked = moment_text(row.revoked_at)
        if until:
            text = _("Valid from {start}, revoked {revoked}. It would have ended {until}.")
        else:
            text = _("Valid from {start}, revoked {revoked}. It had no end date.")
        return text.format(start=start, revoked=revoked, until=until)
    if until:
        return _("Valid from {start} until {until}.").format(start=start, until=until)
    return _("Valid from {start}, no end date.").format(start=start)
