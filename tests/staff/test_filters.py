"""Filters of lists: a chip names each and removes it; a person saves them under a name."""

from typing import Any
from urllib.parse import parse_qs

import pytest
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.staff.framework.filtering import saved_views
from identity.staff.framework.filtering.saved_view import SavedView
from identity.staff.models import StaffAccount
from taxpayers.models import Change, GrantedPermission, SystemUser, Taxpayer
from tests.support.factories import GrantedPermissionFactory, SystemUserFactory, stored_login
from tests.support.staff import list_url, staff_client, text_of
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
        "Time range: 1 Jan 2020, 00:00 to 1 Feb 2020, 00:00",
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
        (SystemUser, "secret=99"),
        (GrantedPermission, "state=99"),
        (StaffAccount, "state=99"),
    ],
)
def test_a_choice_that_a_filter_does_not_have_finds_nothing(
    model: type[Model], query: str, auditor: Client
) -> None:
    """A saved view may have one of an earlier version; its chip must not stand above all rows."""
    at = timezone.now()
    stored_login(at)
    GrantedPermissionFactory.create()
    SystemUserFactory.create()
    name = query.partition("=")[0]
    assert page_of(auditor, model, f"{name}=").context["cl"].result_list
    page = page_of(auditor, model, query)
    assert len(page.context["chips"]) == 1
    assert not page.context["cl"].result_list


SAVE, DELETE = (reverse(f"admin:tokens_loginevent_{what}_view") for what in ("save", "delete"))
QUERY = "fixed_by=the-tax-authority&period=1"


def save(client: Client, name: str, query: str = QUERY) -> Any:
    return client.post(SAVE, {"name": name, "query": query}, follow=True)


def names(client: Client, url: str = "") -> list[str]:
    page = client.get(url or list_url(LoginEvent))
    return [view.name for view in page.context["views"].saved]


def test_a_view_is_saved_opened_replaced_and_deleted(viewer: Client) -> None:
    for unfiltered in ("", "?reason="):
        assert "Save this view" not in text_of(viewer.get(f"{list_url(LoginEvent)}{unfiltered}"))
    page = viewer.get(f"{list_url(LoginEvent)}?p=1&period=1&{QUERY.partition('&')[0]}")
    assert page.context["views"].query == QUERY
    assert "Save this view" in text_of(page)
    saved = save(viewer, "  Ours to\tfix ")
    assert "The view Ours to fix is saved." in text_of(saved)
    assert saved.redirect_chain == [(f"{list_url(LoginEvent)}?{QUERY}", 302)]
    (view,) = saved.context["views"].saved
    assert (
        f'<a href="?{QUERY.replace("&", "&amp;")}" aria-current="true">' in saved.content.decode()
    )
    assert "Save this view" not in text_of(saved)  # it is saved already
    replaced = text_of(save(viewer, "Ours to fix", "period=7"))
    assert "The view Ours to fix had other filters. It now has these." in replaced
    assert [view.query for view in SavedView.objects.all()] == ["period=7"]
    deleted = viewer.post(DELETE, {"view": view.pk}, follow=True)
    assert "The view Ours to fix is deleted." in text_of(deleted)
    assert names(viewer) == []
    assert not Change.objects.exists()


def test_a_view_belongs_to_one_person_and_one_list(viewer: Client) -> None:
    save(viewer, "Mine")
    other = staff_client("auditor")
    assert names(other) == []
    assert names(viewer, list_url(Taxpayer)) == []
    view = SavedView.objects.get()
    other.post(DELETE, {"view": view.pk})
    viewer.post(reverse("admin:taxpayers_taxpayer_delete_view"), {"view": view.pk})
    assert names(viewer) == ["Mine"]
    User.objects.filter(username="siti").delete()
    assert not SavedView.objects.exists()


@pytest.mark.parametrize(
    ("name", "query"),
    [("", QUERY), ("x" * 61, QUERY), ("x\0", QUERY), ("x", ""), ("x", "q=" + "x" * 1000)],
)
def test_a_view_without_a_name_or_filters_is_not_saved(
    name: str, query: str, viewer: Client
) -> None:
    page = save(viewer, name, query)
    assert page.status_code == 200
    assert not SavedView.objects.exists()
    assert [str(message) for message in page.context["messages"]]


def test_only_a_few_are_saved(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 2)
    save(viewer, "a"), save(viewer, "b")
    page = save(viewer, "c")
    assert "You have 2 saved views of this list. Delete one first." in text_of(page)
    save(viewer, "b", "period=7")  # replaces one
    assert names(viewer) == ["a", "b"]


def test_whatever_is_sent_only_a_form_saves_and_deletes_views_of_this_list(viewer: Client) -> None:
    assert [viewer.get(url).status_code for url in (SAVE, DELETE)] == [405, 405]
    for key in ("", "x", "9" * 5_000, "-1", "٣"):
        assert viewer.post(DELETE, {"view": key}).status_code == 302
    page = viewer.post(SAVE, {"name": "x", "query": "//evil.example/&q=a\r\nb"})
    assert page["Location"].startswith(f"{list_url(LoginEvent)}?")
