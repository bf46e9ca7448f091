"""The chart of *Today*: a bar opens its logins."""

from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from taxpayers.rules import RegistryReason
from tests.support.factories import stored_login

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def test_each_bar_and_each_row_of_its_table_opens_its_logins(viewer: Client) -> None:
    hour_ago = timezone.localtime().replace(minute=0, second=0, microsecond=0) - HOUR
    for reason, number in (("", 4), (RegistryReason.SYSTEM_USER_BLOCKED, 3)):
        for _ in range(number):
            stored_login(hour_ago, reason)
    response = viewer.get(reverse("admin:index"))
    content = unescape(response.content.decode())
    bars = response.context["chart"].bars
    assert len(bars) == 24
    assert sum(sum(bar.numbers) for bar in bars) == 7
    for bar in bars:
        assert content.count(f'<a href="{bar.url}"') == 2
        if sum(bar.numbers):
            assert viewer.get(bar.url).context["cl"].result_count == sum(bar.numbers)
