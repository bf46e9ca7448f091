"""Better or worse than last week? Exact numbers, in words; a bar of a chart opens its logins."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise

from identity.staff.overview import page
from identity.staff.overview.traffic import BETTER, SAME, UNKNOWN, WEEK, WORSE, traffic, week_of
from taxpayers.rules import RegistryReason
from tests.support.factories import stored_login
from tests.support.staff import text_of
from tokens.login_events.hourly_counts import CountingProgress, count_all, count_settled
from tokens.login_events.partitions import first_id

NOW = datetime(2026, 5, 20, 4, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
THIS_HOUR = NOW.replace(minute=0)
BLOCKED, EXPIRED = RegistryReason.SYSTEM_USER_BLOCKED, RegistryReason.SECRET_EXPIRED


@pytest.mark.parametrize(
    ("tokens", "refusals", "verdict"),
    [
        ((1000, 1000), (10, 10), SAME),
        ((1000, 1000), (15, 10), SAME),  # less than half a percentage point
        ((1000, 1000), (16, 10), WORSE),
        ((1000, 1000), (10, 16), BETTER),
        ((2000, 1000), (20, 10), SAME),  # more logins, the same part refused
        ((800, 1000), (8, 10), SAME),
        ((799, 1000), (0, 10), WORSE),  # far fewer tokens
        ((0, 1000), (0, 0), WORSE),
        ((10, 0), (0, 0), UNKNOWN),
        ((10, 0), (0, 5), BETTER),
    ],
)
def test_it_is_worse_when_a_larger_part_is_refused_or_far_fewer_get_tokens(
    tokens: tuple[int, int], refusals: tuple[int, int], verdict: Promise
) -> None:
    now, before = (Counter({"": t, BLOCKED: r}) for t, r in zip(tokens, refusals, strict=True))
    assert week_of(now, before).verdict is verdict


# --- The numbers --------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("is_counted", [True, False])
def test_the_latest_24_full_hours_are_compared_with_those_a_week_before(is_counted: bool) -> None:
    second = timedelta(seconds=1)
    inside = [THIS_HOUR - 24 * HOUR, THIS_HOUR - second]
    outside = [THIS_HOUR - 24 * HOUR - second, THIS_HOUR]
    for at in [*inside, *outside]:
        stored_login(at)
        stored_login(at - WEEK, BLOCKED)
    stored_login(inside[0], EXPIRED)
    if is_counted:
        count_all(NOW)
    found = traffic(NOW, count_settled(NOW))
    assert found.full_hours == Counter({"": 2, EXPIRED: 1})
    assert found.week_ago == Counter({BLOCKED: 2})


# --- The page -----------------------------------------------------------------------------------


def make_logins(at: datetime) -> None:
    """Twice as many tokens as last week; three refusals instead of one."""
    hour_ago = timezone.localtime(at).replace(minute=0, second=0, microsecond=0) - HOUR
    for at, reason, number in (
        (hour_ago, "", 4),
        (hour_ago, BLOCKED, 3),
        (hour_ago - WEEK, "", 2),
        (hour_ago - WEEK, BLOCKED, 1),
    ):
        for _ in range(number):
            stored_login(at, reason)


def test_nothing_is_compared_while_older_logins_are_being_counted(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "count_settled", lambda at: CountingProgress(first_id(at), True))
    make_logins(timezone.now())
    assert "last week" not in text_of(viewer.get(reverse("admin:index")))


def test_each_bar_and_each_row_of_its_table_opens_its_logins(viewer: Client) -> None:
    make_logins(timezone.now())
    response = viewer.get(reverse("admin:index"))
    content = unescape(response.content.decode())
    bars = response.context["chart"].bars
    assert len(bars) == 24
    assert sum(sum(bar.numbers) for bar in bars) == 7
    for bar in bars:
        assert content.count(f'<a href="{bar.url}"') == 2
        if sum(bar.numbers):
            assert viewer.get(bar.url).context["cl"].result_count == sum(bar.numbers)
