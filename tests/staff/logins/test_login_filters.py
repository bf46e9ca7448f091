"""Logins of a range of time, of a month, and by who can fix them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from identity.staff.framework.filtering.time_ranges import MONTHS_BACK, parsed_moment
from taxpayers.rules import RegistryReason
from tests.support.staff import list_url, staff_client, text_of
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS, ProtocolReason

pytestmark = pytest.mark.django_db

MIDNIGHT = datetime(2026, 3, 1, 16, tzinfo=UTC)  # of the second of March in Kuala Lumpur
MINUTE = timedelta(minutes=1)


@pytest.fixture
def viewer(db: None) -> Client:
    return staff_client("viewer")


def login(at: datetime, reason: str = "") -> LoginEvent:
    return LoginEvent.objects.create(pk=first_id(at), at=at, reason=reason)


def page_of(client: Client, **query: str) -> Any:
    return client.get(list_url(LoginEvent), query)


def moments(client: Client, **query: str) -> list[datetime]:
    return [row.at for row in page_of(client, **query).context["cl"].result_list]


@pytest.mark.parametrize(
    ("query", "minutes"),
    [
        ({"from": "2026-03-02T00:00"}, [1, 0]),
        ({"to": "2026-03-02T00:00"}, [-1]),
        ({"from": "2026-03-02T00:00", "to": "2026-03-02T00:01"}, [0]),
        ({"from": "2026-03-02"}, [1, 0]),
        ({"to": "2026-03-01"}, [-1]),
        ({"from": "2026-03-01T16:00:00+00:00", "to": "2026-03-01T16:01:00+00:00"}, [0]),
        ({"from": "2026-03-03", "to": "2026-03-01"}, []),
        ({"from": "nonsense"}, [1, 0, -1]),
    ],
)
def test_a_range_begins_with_its_first_moment_and_ends_before_its_last(
    query: dict[str, str], minutes: list[int], viewer: Client
) -> None:
    for minute in (-1, 0, 1):
        login(MIDNIGHT + minute * MINUTE)
    assert moments(viewer, **query) == [MIDNIGHT + minute * MINUTE for minute in minutes]


@pytest.mark.parametrize(
    "text", ["", "9999-12-31", "9999-12-31T23:59Z", "0001-01-01T00:00", "2026-02-30", "x\0"]
)
def test_a_moment_beyond_the_calendar_is_none(text: str) -> None:
    assert parsed_moment(text, is_end=True) is None


def test_a_month_is_that_of_the_authority(viewer: Client) -> None:
    begin = datetime(2026, 2, 28, 16, tzinfo=UTC)  # midnight in Kuala Lumpur
    end = datetime(2026, 3, 31, 16, tzinfo=UTC)
    for at in (begin - MINUTE, begin, end - MINUTE, end):
        login(at)
    assert moments(viewer, month="2026-03") == [end - MINUTE, begin]
    assert moments(viewer, month="2026-13") == []


def test_the_latest_months_are_offered_by_name(viewer: Client) -> None:
    specs = page_of(viewer).context["cl"].filter_specs
    (months,) = [spec for spec in specs if spec.title == "month"]
    names = [name for name, _title in months.lookup_choices]
    assert len(names) == MONTHS_BACK
    assert sorted(names, reverse=True) == names


def test_logins_are_filtered_by_who_can_fix_them(viewer: Client) -> None:
    reasons = {
        RegistryReason.SYSTEM_USER_BLOCKED: "the-tax-authority",
        RegistryReason.TAXPAYER_INACTIVE: "the-tax-authority",
        RegistryReason.PERMISSION_EXPIRED: "the-represented-taxpayer",
    }
    for minute, reason in enumerate(reasons):
        login(MIDNIGHT + minute * MINUTE, reason)
    login(MIDNIGHT + 9 * MINUTE)
    assert len(moments(viewer, fixed_by="the-tax-authority")) == 2
    assert len(moments(viewer, fixed_by="the-represented-taxpayer")) == 1
    assert moments(viewer, fixed_by="nobody-at-all") == []


def test_everybody_who_can_fix_a_recorded_login_is_offered(viewer: Client) -> None:
    specs = page_of(viewer).context["cl"].filter_specs
    (people,) = [spec for spec in specs if spec.title == "who can fix it"]
    assert {str(title) for _key, title in people.lookup_choices} == {
        row.fixed_by for row in REFUSALS.values() if row.recorded
    }
    nobody = REFUSALS[ProtocolReason.TEMPORARILY_UNAVAILABLE].fixed_by
    assert nobody not in text_of(page_of(viewer))


def test_the_form_of_a_range_keeps_the_other_filters(viewer: Client) -> None:
    page = page_of(viewer, reason="refused", q="C1", **{"from": "2026-03-02T00:00"})
    form = page.content.decode().partition('id="filter-from"')[0].rpartition("<form")[2]
    assert '<input type="hidden" name="reason" value="refused">' in form
    assert '<input type="hidden" name="q" value="C1">' in form
    assert 'name="from" value="2026-03-02T00:00"' in page.content.decode()
