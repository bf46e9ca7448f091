"""A date without a time is a whole day in the authority's time zone (contract 6)."""

from argparse import ArgumentTypeError
from datetime import UTC, datetime

import pytest
from pytest_django import Settings

from taxpayers.management.arguments import parse_end, parse_start


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "day", "first", "last"),
    [
        ("Asia/Kuala_Lumpur", "2026-03-01", "2026-02-28T16:00", "2026-03-01T15:59:59.999999"),
        ("UTC", "2026-03-01", "2026-03-01T00:00", "2026-03-01T23:59:59.999999"),
        ("UTC", "20240229", "2024-02-29T00:00", "2024-02-29T23:59:59.999999"),
        # "For ever", as people write it, must not overflow.
        ("Asia/Kuala_Lumpur", "9999-12-31", "9999-12-30T16:00", "9999-12-31T15:59:59.999999"),
        # Cairo puts its clocks forward at midnight: that day begins at one o'clock,
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00", "2026-04-24T20:59:59.999999"),
        # and back at midnight: the last hour of that day comes twice.
        ("Africa/Cairo", "2026-10-29", "2026-10-28T21:00", "2026-10-29T21:59:59.999999"),
    ],
)
def test_a_day_lasts_from_its_parse_start_to_its_last(
    settings: Settings, zone: str, day: str, first: str, last: str
) -> None:
    settings.TIME_ZONE = zone
    assert parse_start(day) == utc(first)
    assert parse_end(day) == utc(last)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01T18:00", "2026-03-01T10:00"),
        ("2026-03-01 18:00:30", "2026-03-01T10:00:30"),
        ("2026-03-01T18:00Z", "2026-03-01T18:00"),
        ("2026-03-01T18:00+05:30", "2026-03-01T12:30"),
        ("2026-03-01T00:00", "2026-02-28T16:00"),
        ("2026-03-01T23:59:59.999999Z", "2026-03-01T23:59:59.999999"),
    ],
)
def test_a_date_with_a_time_is_local_unless_it_names_a_time_zone(
    settings: Settings, text: str, moment: str
) -> None:
    settings.TIME_ZONE = "Asia/Kuala_Lumpur"
    assert parse_start(text) == parse_end(text) == utc(moment)
    assert parse_start(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "2026", "2026-02-30", "31.12.2026", "12/31/2026", "2026-03-01T25:00"),
        *("0001-01-01T00:00", "9999-12-31T23:59Z", "9999-12-31T23:59-05:00", "10000-01-01"),
        "2026-03-01T10:00Europe/Rome",
    ],
)
def test_a_malformed_date_is_refused_with_an_example(settings: Settings, text: str) -> None:
    settings.TIME_ZONE = "Asia/Kuala_Lumpur"
    for read in (parse_start, parse_end):
        with pytest.raises(ArgumentTypeError, match=r"is not a date. Write 2027-12-31, ") as fault:
            read(text)
        assert "(in Asia/Kuala_Lumpur)" in str(fault.value)
