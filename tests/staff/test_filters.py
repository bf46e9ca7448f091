"""Filters of lists: a chip names each and removes it."""

from typing import Any
from urllib.parse import parse_qs

import pytest
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from identity.staff.models import StaffAccount
from taxpayers.models import GrantedPermission, SystemUser, Taxpayer
from tests.support.factories import GrantedPermissionFactory, SystemUserFactory, stored_login
from tests.support.staff import list_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

FILTERED: list[tuple[type[Model], str, str]] = [
    (LoginEvent, "reason=refused", "Result: Refused, any reason"),
    (LoginEvent, "reason=unheard_of", "Result: unheard_of"),
    (LoginEvent, "period=1h", "Time range: Last hour"),
    (LoginEvent, "to=2026-03-01T10:00", "Time range: before 1 Mar 2026, 10:00"),
    (
        LoginEvent,
        "from=2020-01-01&to=2020-01-31",
        "Time range: from 1 Jan 2020, 00:00 before 1 Feb 2020, 00:00",
    ),
    (LoginEvent, "q=C1", "Search: C1"),
    (Taxpayer, "is_active__exact=0", "Active: No"),
    (SystemUser, "state=blocked", "State: Blocked"),
]


def page_of(client: Client, model: type[Model], query: str) -> Any:
    return client.get(f"{list_url(model)}?{query}")


@pytest.mark.parametrize(("model", "query", "shown"), FILTERED)
def test_an_active_filter_has_a_chip_that_removes_it(
    model: type[Model], query: str, shown: str, auditor: Client
) -> None:
    page = page_of(auditor, model, query)
    (chip,) = page.context["chips"]
    assert f"{chip.title}: {chip.value}" == shown
    assert shown in text_of(page)
    assert f"Remove the filter {shown}" in text_of(page)
    assert chip.url == "?"
    query = "from=nonsense&to=2026-13-01" if model is LoginEvent else ""
    without = page_of(auditor, model, query)
    assert without.context["chips"] == []
    assert "Active filters" not in without.content.decode()


def test_a_chip_removes_its_own_filter_and_the_page_number_only(auditor: Client) -> None:
    query = "q=C1&reason=refused&from=2026-03-01&to=2026-03-02&p=1"
    page = page_of(auditor, LoginEvent, query)
    assert "Remove all filters" in text_of(page)
    assert "Remove all filters" not in text_of(page_of(auditor, LoginEvent, "q=C1"))
    chips = {chip.title: chip.url for chip in page.context["chips"]}
    every = {"q": ["C1"], "reason": ["refused"], "from": ["2026-03-01"], "to": ["2026-03-02"]}
    for title, names in {
        "Search": ["q"],
        "Result": ["reason"],
        "Time range": ["from", "to"],
    }.items():
        left = {name: value for name, value in every.items() if name not in names}
        assert parse_qs(chips[title][1:]) == left


@pytest.mark.parametrize(
    ("model", "query"),
    [
        (LoginEvent, "period=99"),
        (SystemUser, "state=99"),
        (GrantedPermission, "state=99"),
        (StaffAccount, "state=99"),
    ],
)
def test_a_choice_that_a_filter_does_not_have_finds_nothing(
    model: type[Model], query: str, auditor: Client
) -> None:
    """An address may have one of an earlier version; its chip must not stand above all rows."""
    at = timezone.now()
    stored_login(at)
    GrantedPermissionFactory.create()
    SystemUserFactory.create()
    name = query.partition("=")[0]
    assert page_of(auditor, model, f"{name}=").context["cl"].result_list
    page = page_of(auditor, model, query)
    assert len(page.context["chips"]) == 1
    assert not page.context["cl"].result_list
