"""Exports that no spreadsheet runs as formulas, and one task for several selected records."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from identity.staff.framework import bulk_tasks
from identity.staff.system_users.blocking import BlockSystemUser
from taxpayers.files.csv_escaping import escape_formula, unescape_formula
from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.services import Author, ServiceError, block_system_user
from taxpayers.services.system_users import BLOCK_SYSTEM_USER
from tests.registry.workbooks import formulas_of, rows_of
from tests.support.factories import GrantedPermissionFactory, SystemUserFactory, TaxpayerFactory
from tests.support.staff import (
    ADDRESS,
    AUDITOR,
    REGISTRAR,
    SECURITY_OFFICER,
    VIEWER,
    csv_rows_of,
    errors_of,
    list_url,
    staff_client,
    text_of,
)
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db


@pytest.fixture
def registrar(db: None) -> Client:
    return staff_client(REGISTRAR)


# --- Export -------------------------------------------------------------------------------------


def export(client: Client, model: Any, form: str = "csv", query: str = "") -> Any:
    return client.get(f"{list_url(model)}export.{form}{query}")


def test_an_export_has_what_the_list_shows(registrar: Client) -> None:
    TaxpayerFactory.create(tin="C0000000001", name="One")
    TaxpayerFactory.create(tin="C0000000002", rob="R-123", name="Two", is_active=False)
    header, *rows = csv_rows_of(export(registrar, Taxpayer, query="?is_active__exact=0"))
    assert header == ["tin", "rob", "name", "active", "registered_at"]
    assert [row[:4] for row in rows] == [["C0000000002", "R-123", "Two", "no"]]
    (_header, *rows) = csv_rows_of(export(registrar, Taxpayer, query="?q=C0000000001"))
    assert [row[0] for row in rows] == ["C0000000001"]


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


@pytest.mark.parametrize(
    "model", [Taxpayer, SystemUser, Intermediary, GrantedPermission, LoginEvent]
)
def test_every_list_is_exported_in_as_many_queries_for_thirty_rows_as_for_one(model: Any) -> None:
    client = staff_client(SECURITY_OFFICER)
    counts = []
    for rows in (1, 29):
        for _ in range(rows):
            GrantedPermissionFactory.create(taxpayer=SystemUserFactory.create().taxpayer)
        with CaptureQueriesContext(connection) as queries:
            assert len(csv_rows_of(export(client, model))[0]) >= 5
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("model", [Taxpayer, SystemUser, LoginEvent, GrantedPermission])
def test_a_long_export_is_read_in_batches_and_has_every_row_once_in_its_order(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        taxpayer = TaxpayerFactory.create(tin=f"C{number % 3:010}", rob=f"R-{9 - number:04}")
        SystemUserFactory.create(taxpayer=taxpayer)
        GrantedPermissionFactory.create(taxpayer=taxpayer)
        LoginEvent(client_id=f"c{number}", at=timezone.now(), pk=uuid7()).save()
    client = staff_client(SECURITY_OFFICER)
    whole = csv_rows_of(export(client, model))
    monkeypatch.setattr("identity.staff.framework.export._CHUNK", 3)
    with CaptureQueriesContext(connection) as queries:
        assert csv_rows_of(export(client, model)) == whole
    pages = [query["sql"] for query in queries if "LIMIT 3" in query["sql"]]
    assert len(pages) == (len(whole) - 1) // 3 + 1
    assert all("<" in sql or ">" in sql for sql in pages[1:])


def test_an_export_to_a_workbook_is_limited_and_suggests_csv(
    registrar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("identity.staff.framework.export.MAX_ROWS_WRITTEN", 2)
    TaxpayerFactory.create_batch(3)
    response = registrar.get(f"{list_url(Taxpayer)}export.xlsx?q=C0", follow=True)
    assert "more than 2 rows. Export it as CSV" in text_of(response)


def test_an_export_is_recorded_in_the_history(registrar: Client) -> None:
    export(registrar, SystemUser, "csv", "?state=blocked")
    (change,) = Change.objects.all()
    assert (change.action, change.by, change.address) == ("export_registry", "aminah", ADDRESS)
    assert change.after == {"form": "csv", "filters": "state=blocked"}


def test_an_export_needs_its_permission() -> None:
    viewer, officer = staff_client(VIEWER), staff_client(REGISTRAR, "badrul")
    assert export(viewer, Taxpayer).status_code == 403
    assert "Export" not in text_of(viewer.get(list_url(Taxpayer)))
    assert export(officer, LoginEvent).status_code == 403
    assert export(staff_client(AUDITOR, "chong"), LoginEvent).status_code == 200


# --- Bulk tasks --------------------------------------------------------------------------------


def act(client: Client, task: str, users: list[SystemUser], **form: str) -> Any:
    """Choose the action in the list; with `confirmed` also what a click on its button sends."""
    return act_on(client, SystemUser, task, users, **form)


def act_on(client: Client, model: Any, task: str, records: list[Any], **form: str) -> Any:
    data = {"action": f"bulk_{task}", "_selected_action": [record.pk for record in records]}
    if "confirmed" in form:
        entered = {name: value for name, value in form.items() if name != "confirmed"}
        shown = client.post(list_url(model), data | entered, follow=True)
        if "fingerprint" in (shown.context or ()):
            form = {"previewed": shown.context["fingerprint"]} | form
    return client.post(list_url(model), data | form, follow=True)


@pytest.fixture
def users(db: None) -> list[SystemUser]:
    return SystemUserFactory.create_batch(3)


def blocked() -> int:
    return SystemUser.objects.filter(blocked_at__isnull=False).count()


def test_the_page_to_confirm_names_the_selected_records(
    registrar: Client, users: list[SystemUser]
) -> None:
    text = text_of(act(registrar, "block_system_user", users[:2]))
    assert "2 selected" in text
    assert users[0].name in text
    assert users[2].name not in text
    assert blocked() == 0


def test_after_confirmation_each_is_blocked_by_the_service(
    registrar: Client, users: list[SystemUser]
) -> None:
    block_system_user(system_user=users[0], reason="before", by=Author("x"), at=timezone.now())
    done = act(registrar, "block_system_user", users[:2], confirmed="1", reason="fraud")
    assert "1 done" in text_of(done)
    assert blocked() == 2
    (change,) = Change.objects.filter(reason="fraud")
    assert (change.by, change.address, change.object_id) == ("aminah", ADDRESS, str(users[1].pk))


def test_the_history_shows_which_changes_were_one_task(
    registrar: Client, users: list[SystemUser]
) -> None:
    for reason, some in (("fraud", users[:2]), ("sold", users[2:])):
        act(registrar, "block_system_user", some, confirmed="1", reason=reason)
    tasks = {
        reason: set(Change.objects.filter(reason=reason).values_list("task_id", flat=True))
        for reason in ("fraud", "sold")
    }
    assert [len(ids) for ids in tasks.values()] == [1, 1]
    assert tasks["fraud"].isdisjoint(tasks["sold"] | {None})
    alone = SystemUserFactory.create()
    block_system_user(system_user=alone, reason="x", by=Author("x"), at=timezone.now())
    assert Change.objects.get(reason="x").task_id is None


def test_a_reason_is_needed(registrar: Client, users: list[SystemUser]) -> None:
    assert errors_of(act(registrar, "block_system_user", users, confirmed="1", reason=" "))
    assert blocked() == 0


def test_all_or_none(users: list[SystemUser], monkeypatch: pytest.MonkeyPatch) -> None:
    client = staff_client(SECURITY_OFFICER)
    calls: list[Any] = []

    def fails_at_the_last(**arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == len(users):
            raise ServiceError("it fell over")
        return block_system_user(**arguments)

    failing = replace(BLOCK_SYSTEM_USER, service=fails_at_the_last)
    monkeypatch.setattr(BlockSystemUser, "operation", failing)
    done = act(client, "block_system_user", users, confirmed="1", reason="fraud")
    assert "Nothing was changed" in errors_of(done)
    assert "it fell over" in errors_of(done)
    assert len(calls) == 3
    assert blocked() == 0
    assert not Change.objects.exists()


def test_too_many_selected_records_are_refused(
    registrar: Client, users: list[SystemUser], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_tasks, "MAX_RECORDS", 2)
    done = act(registrar, "block_system_user", users, confirmed="1", reason="fraud")
    assert "Select at most 2 records" in text_of(done)
    assert blocked() == 0


@pytest.mark.parametrize(
    ("role", "task"), [(VIEWER, "block_system_user"), (REGISTRAR, "extend_system_user")]
)
def test_a_bulk_task_needs_the_permission_of_the_task(
    role: str, task: str, users: list[SystemUser]
) -> None:
    client = staff_client(role)
    act(client, task, users, confirmed="1", reason="x", expires="2099-01-01")
    assert not Change.objects.exists()
