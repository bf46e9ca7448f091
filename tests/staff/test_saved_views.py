"""Saved views: the filters of a list under a name, of one person, deletable."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from identity.staff.framework.filtering import saved_views
from identity.staff.framework.filtering.saved_view import SavedView
from taxpayers.models import Change, Taxpayer
from tests.support.staff import list_url, staff_client, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

SAVE, DELETE = (reverse(f"admin:tokens_loginevent_{what}_view") for what in ("save", "delete"))
QUERY = "fixed_by=the-tax-authority&period=1"


def save(client: Client, name: str, query: str = QUERY) -> Any:
    return client.post(SAVE, {"name": name, "query": query}, follow=True)


def names(client: Client, url: str = "") -> list[str]:
    page = client.get(url or list_url(LoginEvent))
    return [view.name for view in page.context["views"].saved]


def test_a_view_is_saved_opened_and_deleted(viewer: Client) -> None:
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
    deleted = viewer.post(DELETE, {"view": view.pk}, follow=True)
    assert "The view Ours to fix is deleted." in text_of(deleted)
    assert names(viewer) == []


def test_a_view_belongs_to_one_person_and_one_list(viewer: Client) -> None:
    save(viewer, "Mine")
    other = staff_client("auditor")
    assert names(other) == []
    assert names(viewer, list_url(Taxpayer)) == []
    view = SavedView.objects.get()
    other.post(DELETE, {"view": view.pk})
    viewer.post(reverse("admin:taxpayers_taxpayer_delete_view"), {"view": view.pk})
    assert names(viewer) == ["Mine"]


def test_the_same_name_replaces_the_view_and_the_page_says_so(viewer: Client) -> None:
    save(viewer, "Mine", "period=1")
    replaced = text_of(save(viewer, "Mine", "period=7"))
    assert "The view Mine had other filters. It now has these." in replaced
    assert [view.query for view in SavedView.objects.all()] == ["period=7"]


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


def test_nobody_saves_more_than_a_few(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 2)
    save(viewer, "a"), save(viewer, "b")
    page = save(viewer, "c")
    assert "You have 2 saved views of this list. Delete one first." in text_of(page)
    save(viewer, "b", "period=7")  # replaces one
    assert SavedView.objects.get(name="b").query == "period=7"
    assert names(viewer) == ["a", "b"]


def test_whatever_is_sent_only_a_form_saves_and_deletes_views_of_this_list(viewer: Client) -> None:
    assert [viewer.get(url).status_code for url in (SAVE, DELETE)] == [405, 405]
    for key in ("", "x", "9" * 5_000, "-1", "٣"):
        assert viewer.post(DELETE, {"view": key}).status_code == 302
    page = viewer.post(SAVE, {"name": "x", "query": "//evil.example/&q=a\r\nb"})
    assert page["Location"].startswith(f"{list_url(LoginEvent)}?")


def test_views_leave_no_trace_in_the_history_and_end_with_the_account(viewer: Client) -> None:
    save(viewer, "Mine")
    assert not Change.objects.exists()
    User.objects.filter(username="siti").delete()
    assert not SavedView.objects.exists()
