"""Whatever the report and *As of a date* are asked, they answer."""

import pytest
from django.test import Client

from taxpayers.models import Change
from tests.history.test_as_of_pages import AS_OF, TIN, Story
from tests.history.test_report import REPORT
from tests.staff.test_hostile_requests import check, client, encoded, values
from tests.support.staff import list_url

__all__ = ["client"]  # the fixture
pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@values
def test_the_report_and_its_export(value: str, client: Client) -> None:
    Story()
    for name in ("since", "until", "by", "action", "about", "after"):
        check(client.get(f"{REPORT}?{encoded(**{name: value})}"))
        check(client.get(f"{list_url(Change)}export.csv?{encoded(**{name: value})}"))
    check(client.get(f"{list_url(Change)}task/{encoded(a=value)[2:]}/"))


@values
def test_the_question_about_a_date(value: str, client: Client) -> None:
    Story()
    asked = {"about": TIN, "day": "2026-03-05", "time": "12:00", "p": "1"}
    for name in asked:
        check(client.get(f"{AS_OF}?{encoded(**asked | {name: value})}"))
