"""Better or worse than last week? Exact numbers, in words; a bar of a chart opens its logins."""

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.staff.overview.comparison import Compared, Comparison, Trend, Verdict, compare
from identity.staff.overview.traffic import WEEK, traffic
from identity.staff.overview.week import week_of
from taxpayers.rules import RegistryReason
from tests.support.factories import stored_login
from tests.support.staff import text_of
from tokens.login_events.hourly_counts import CountingProgress, count_all, count_settled
from tokens.login_events.partitions import first_id

NOW = datetime(2026, 5, 20, 4, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
THIS_HOUR = NOW.replace(minute=0)
BLOCKED, EXPIRED = RegistryReason.SYSTEM_USER_BLOCKED, RegistryReason.SECRET_EXPIRED
FIXED_BY: dict[str, str] = {BLOCKED: "The tax authority", EXPIRED: "The operator"}


@pytest.mark.parametrize(
    ("now", "before", "trend", "difference", "percent"),
    [
        (12, 10, Trend.MORE, 2, 20),
        (10, 12, Trend.FEWER, 2, 17),
        (7, 7, Trend.SAME, 0, 0),
        (3, 0, Trend.MORE, 3, None),
        (0, 0, Trend.SAME, 0, None),
    ],
)
def test_a_number_is_compared_with_that_of_last_week(
    now: int, before: int, trend: Trend, difference: int, percent: int | None
) -> None:
    compared = Compared(now, before)
    assert (compared.trend, compared.difference, compared.percent) == (trend, difference, percent)


@pytest.mark.parametrize(
    ("tokens", "refusals", "verdict"),
    [
        ((1000, 1000), (10, 10), Verdict.SAME),
        ((1000, 1000), (15, 10), Verdict.SAME),  # less than half a percentage point
        ((1000, 1000), (16, 10), Verdict.WORSE),
        ((1000, 1000), (10, 16), Verdict.BETTER),
        ((2000, 1000), (20, 10), Verdict.SAME),  # more logins, the same part refused
        ((800, 1000), (8, 10), Verdict.SAME),
        ((799, 1000), (0, 10), Verdict.WORSE),  # far fewer tokens
        ((0, 1000), (0, 0), Verdict.WORSE),
        ((10, 0), (0, 0), Verdict.UNKNOWN),
        ((10, 0), (0, 5), Verdict.BETTER),
    ],
)
def test_it_is_worse_when_a_larger_part_is_refused_or_far_fewer_get_tokens(
    tokens: tuple[int, int], refusals: tuple[int, int], verdict: Verdict
) -> None:
    assert Comparison(Compared(*tokens), Compared(*refusals), ()).verdict is verdict


def test_refusals_are_added_up_by_who_can_fix_them() -> None:
    now = Counter({"": 90, BLOCKED: 3, EXPIRED: 2, "unheard_of": 1})
    before = Counter({"": 80, BLOCKED: 1, RegistryReason.NO_PERMISSION: 4})
    found = compare(now, before, FIXED_BY | {RegistryReason.NO_PERMISSION: "The tax authority"})
    assert (found.tokens, found.refusals) == (Compared(90, 80), Compared(6, 5))
    assert found.by_fixer == (
        ("The tax authority", Compared(3, 5)),
        ("The operator", Compared(2, 0)),
        ("", Compared(1, 0)),
    )


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
    assert found.full_hours_begin == THIS_HOUR - 24 * HOUR


@pytest.mark.django_db
def test_nothing_is_compared_while_older_logins_are_being_counted() -> None:
    behind = traffic(NOW, CountingProgress(first_id(NOW - WEEK), is_behind=True))
    assert week_of(behind, lambda **_filters: "") is None


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


def test_the_page_says_it_in_words_with_a_list_behind_each_number(viewer: Client) -> None:
    make_logins(timezone.now())
    page = viewer.get(reverse("admin:index"))
    shown = text_of(page)
    assert "Worse than last week" in shown
    assert "Of all logins, 42.9 % were refused; 33.3 % at the same hours last week." in shown
    assert "Token issued 4 Token issued 2 arrow_upward 2 more (100 %)" in shown
    assert "Refused: The tax authority can fix it 3" in shown
    assert "Throttled logins are not compared: they leave no record" in shown
    for row in page.context["week"].rows:
        assert viewer.get(row.url).context["cl"].result_count == row.compared.now > 0


def test_a_service_without_logins_last_week_has_nothing_to_compare(viewer: Client) -> None:
    shown = text_of(viewer.get(reverse("admin:index")))
    assert "There were no logins in these hours last week." in shown
    assert "Token issued 0 Token issued 0 equal the same" in shown


def test_each_bar_and_each_row_of_its_table_opens_its_logins(viewer: Client) -> None:
    make_logins(timezone.now())
    page = viewer.get(reverse("admin:index"))
    content = page.content.decode()
    charts = [json.loads(unescape(urls)) for urls in re.findall(r'data-urls="([^"]+)"', content)]
    assert [len(urls) for urls in charts] == [24, 30]
    for panel, urls in zip(page.context["panels"], charts, strict=True):
        for (_label, issued, refused, url), of_bar in zip(panel["chart"].rows, urls, strict=True):
            assert url == of_bar
            assert unescape(f'<a href="{url}">') in unescape(content)
            if issued + refused:
                assert viewer.get(url).context["cl"].result_count == issued + refused
