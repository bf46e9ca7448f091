"""The bar of a permission shows when it is valid, was planned to be, and where the present is."""

from datetime import UTC, datetime, timedelta

from identity.staff.history.time_bars import WIDTH, TimeBar, time_bars
from taxpayers.models import GrantedPermission

DAY = timedelta(days=1)
AT = datetime(2026, 3, 1, 4, 0, tzinfo=UTC)  # noon in Kuala Lumpur


def permission(start: int, end: int | None = None, revoked: int | None = None) -> GrantedPermission:
    """Days from AT."""
    return GrantedPermission(
        valid_from=AT + start * DAY,
        valid_until=None if end is None else AT + end * DAY,
        revoked_at=None if revoked is None else AT + revoked * DAY,
    )


def bar(start: int, end: int | None = None, revoked: int | None = None) -> TimeBar:
    (only,) = time_bars([permission(start, end, revoked)], AT)
    return only


def test_a_valid_permission_fills_its_whole_plan() -> None:
    shown = bar(-10, 10)
    assert shown.valid == shown.planned
    assert (shown.planned.x, shown.planned.width, shown.at) == (40, 920, 500)
    assert shown.text == "Valid from 19 Feb 2026, 12:00 until 11 Mar 2026, 12:00."
    endless = bar(-10)  # goes to the edge
    assert endless.planned.x + endless.planned.width == WIDTH
    assert endless.text == "Valid from 19 Feb 2026, 12:00, no end date."
    assert bar(0, 0).planned.width == 1  # no bar is invisible


def test_a_revoked_permission_ends_at_its_revocation() -> None:
    shown = bar(-10, 10, revoked=-5)
    assert shown.is_revoked
    assert shown.valid is not None
    assert shown.valid.x == shown.planned.x
    assert shown.valid.width == shown.planned.width / 4
    assert shown.text == (
        "Valid from 19 Feb 2026, 12:00, revoked 24 Feb 2026, 12:00."
        " It would have ended 11 Mar 2026, 12:00."
    )
    assert bar(-10, None, revoked=-5).text.endswith("It had no end date.")
    too_late = bar(-10, -5, revoked=-1)
    assert not too_late.is_revoked
    assert too_late.valid == too_late.planned
    assert bar(5, 10, revoked=1).valid is None  # it never began
