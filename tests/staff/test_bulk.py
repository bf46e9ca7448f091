"""Exports that no spreadsheet runs as formulas, and one task for several selected records."""

import re
from collections import defaultdict
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from identity.staff.framework import bulk_tasks
from taxpayers.files.csv_reader import escape_formula, unescape_formula
from taxpayers.models import Change, GrantedPermission, SystemUser, Taxpayer
from taxpayers.operations import SERVICES
from taxpayers.services import Author, ServiceError, block_system_user
from taxpayers.services.system_users import BLOCK_SYSTEM_USER
from tests.registry.workbooks import formulas_of, rows_of
from tests.support.factories import (
    GrantedPermissionFactory,
    SystemUserFactory,
    TaxpayerFactory,
    stored_login,
)
from tests.support.staff import ADDRESS, csv_rows_of, errors_of, list_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db


def export(client: Client, model: Any, form: str = "csv", query: str = "") -> Any:
    return client.get(f"{list_url(model)}export.{form}{query}")


def test_an_export_has_what_the_list_shows(
    registrar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    TaxpayerFactory.create(tin="C0000000001", name="One")
    TaxpayerFactory.create(tin="C0000000002", rob="R-123", name="Two", is_active=False)
    header, *rows = csv_rows_of(export(registrar, Taxpayer, query="?is_active__exact=0"))
    assert header == ["tin", "rob", "name", "active", "registered_at"]
    assert [row[:4] for row in rows] == [["C0000000002", "R-123", "Two", "no"]]
    (_header, *rows) = csv_rows_of(
        export(registrar, Taxpayer, query="?q=C0000000001&is_active__exact=1")
    )
    assert [row[0] for row in rows] == ["C0000000001"]
    *_, begun, ended = Change.objects.order_by("pk")  # each export is in the history
    assert (begun.action, begun.by, begun.address) == ("export_registry", "nurul", ADDRESS)
    assert begun.after == {"form": "csv", "filters": "Search: C0000000001; Active: Yes"}
    assert (ended.task_id, ended.after["rows"]) == (begun.task_id, 1)
    monkeypatch.setattr("identity.staff.framework.export.MAX_ROWS_WRITTEN", 1)
    response = registrar.get(f"{list_url(Taxpayer)}export.xlsx?q=C0", follow=True)
    assert "more than 1 rows. Export it as CSV" in text_of(response)


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_no_cell_of_an_export_is_a_formula(form: str, registrar: Client) -> None:
    for number, name in enumerate(["=1+1", "+1", "-1", "@sum", "\uff1d1", "plain"]):
        TaxpayerFactory.create(tin=f"C000000000{number}", name=name)
    response = export(registrar, Taxpayer, form)
    if form == "csv":
        names = [row[2] for row in csv_rows_of(response)[1:]]
    else:
        book = b"".join(response.streaming_content)
        assert formulas_of(book) == 0
        names = [row[2] for row in rows_of(book)[1:]]
    assert names == ["'=1+1", "'+1", "'-1", "'@sum", "'\uff1d1", "plain"]


@given(st.text())
def test_what_is_escaped_is_read_back_as_it_was(text: str) -> None:
    assert escape_formula(text)[:1] not in tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
    if not text.startswith(("'", "\t", "\r", "\n")):
        assert unescape_formula(escape_formula(text)) == text


@pytest.mark.parametrize("model", [Taxpayer, SystemUser, LoginEvent, GrantedPermission])
def test_a_long_export_is_read_in_batches_and_has_every_row_once_in_its_order(
    model: Any, officer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        taxpayer = TaxpayerFactory.create(tin=f"C{number % 3:010}", rob=f"R-{9 - number:04}")
        SystemUserFactory.create(taxpayer=taxpayer)
        GrantedPermissionFactory.create(taxpayer=taxpayer)
        stored_login(client_id=f"c{number}")
    whole = csv_rows_of(export(officer, model))
    monkeypatch.setattr("identity.staff.framework.export._CHUNK", 3)
    with CaptureQueriesContext(connection) as queries:
        assert csv_rows_of(export(officer, model)) == whole
    pages = [query["sql"] for query in queries if "LIMIT 3" in query["sql"]]
    assert len(pages) == (len(whole) - 1) // 3 + 1
    assert all("<" in sql or ">" in sql for sql in pages[1:])


def act(client: Client, task: str, users: list[SystemUser], **form: str) -> Any:
    return act_on(client, SystemUser, task, users, **form)


def act_on(client: Client, model: Any, task: str, records: list[Any], **form: str) -> Any:
    """Choose the action in the list; with `confirmed` also press the button of the page."""
    entered = {name: value for name, value in form.items() if name != "confirmed"}
    data = {"action": f"bulk_{task}", "_selected_action": [record.pk for record in records]}
    shown = client.post(list_url(model), data | entered, follow=True)
    if "confirmed" not in form:
        return shown
    return client.post(list_url(model), button_of(shown) | entered, follow=True)


def button_of(shown: Any) -> dict[str, list[str]]:
    """What the page sends, besides what is entered, when its button is pressed."""
    pattern = r'<(?:input type="hidden"|button type="submit") name="(\w+)" value="([^"]*)"'
    sent: dict[str, list[str]] = defaultdict(list)
    for name, value in re.findall(pattern, shown.content.decode().partition("<main")[2]):
        sent[name].append(value)
    return sent


@pytest.fixture
def users(db: None) -> list[SystemUser]:
    return SystemUserFactory.create_batch(3)


def blocked() -> int:
    return SystemUser.objects.filter(blocked_at__isnull=False).count()


def test_several_are_blocked_after_a_confirmation_as_one_task(
    registrar: Client, users: list[SystemUser], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert errors_of(act(registrar, "block_system_user", users, confirmed="1", reason=" "))
    shown = text_of(act(registrar, "block_system_user", users[:2]))
    assert "2 selected" in shown
    assert [user.name in shown for user in users] == [True, True, False]
    assert blocked() == 0
    block_system_user(system_user=users[0], reason="before", by=Author("x"), at=timezone.now())
    done = act(registrar, "block_system_user", users, confirmed="1", reason="fraud")
    assert "2 done" in text_of(done)
    assert blocked() == 3
    changes = Change.objects.filter(reason="fraud")
    assert {change.object_id for change in changes} == {str(user.pk) for user in users[1:]}
    assert {(change.by, change.address) for change in changes} == {("nurul", ADDRESS)}
    (task,) = set(changes.values_list("task_id", flat=True))
    assert task is not None
    assert Change.objects.get(reason="before").task_id is None
    monkeypatch.setattr(bulk_tasks, "MAX_RECORDS", 2)
    assert "Select at most 2 records" in text_of(act(registrar, "block_system_user", users))


def test_a_bulk_task_needs_the_permission_of_the_task(
    viewer: Client, users: list[SystemUser], rf: RequestFactory
) -> None:
    for task in ("block_system_user", "extend_system_user", "unblock_system_user"):
        act(viewer, task, users, reason="x", expires="2099-01-01")
    request = rf.post("/")
    request.user = User.objects.get(username="siti")
    for pages in admin.site._registry.values():
        for task in getattr(pages, "bulk_tasks", ()):
            with pytest.raises(PermissionDenied):
                task(pages, request, pages.model._default_manager.all())
    assert not Change.objects.exists()


def test_all_or_none(
    officer: Client, users: list[SystemUser], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    def fails_at_the_last(**arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == len(users):
            raise ServiceError("it fell over")
        return block_system_user(**arguments)

    monkeypatch.setitem(SERVICES, BLOCK_SYSTEM_USER, (fails_at_the_last, "system_user"))
    done = act(officer, "block_system_user", users, confirmed="1", reason="fraud")
    assert "Nothing was changed" in errors_of(done)
    assert "it fell over" in errors_of(done)
    assert len(calls) == 3
    assert blocked() == 0
    assert not Change.objects.exists()
