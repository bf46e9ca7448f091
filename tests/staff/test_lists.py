"""Lists and their exports: search, filters, chips; and one task for several records."""

import re
from collections import defaultdict
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import Model
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given, strategies as st

from identity.staff.framework import bulk_tasks
from identity.staff.framework.search import CappedPaginator
from identity.staff.models import StaffAccount
from taxpayers.files.csv_reader import escape_formula, unescape_formula
from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.operations import SERVICES
from taxpayers.services import ServiceError, block_system_user
from taxpayers.services.system_users import BLOCK_SYSTEM_USER
from tests.support import make
from tests.support.factories import stored_login
from tests.support.moments import why
from tests.support.staff import ADDRESS, csv_rows_of, errors_of, list_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db
LISTS: list[type[Model]] = [Taxpayer, Intermediary, GrantedPermission, SystemUser, LoginEvent]


def listed(client: Client, model: type[Model], query: str) -> list[Any]:
    response = client.get(list_url(model) + query)
    assert response.status_code == 200, response.status_code
    return list(response.context["cl"].result_list)


@pytest.mark.parametrize("model", LISTS, ids=lambda m: m.__name__)
def test_a_list_counts_no_further_than_its_cap_and_takes_no_condition_of_the_reader(
    model: type[Model], officer: Client
) -> None:
    assert tuple(admin.site.get_model_admin(model).sortable_by or ()) == ()
    for query in ("", "?q=C00", "?_facets=True"):
        with CaptureQueriesContext(connection) as queries:
            page = officer.get(list_url(model) + query)
        asked = [query["sql"] for query in queries]
        counts = [sql for sql in asked if re.search(r"\bCOUNT\(", sql, re.IGNORECASE)]
        assert all(f"LIMIT {CappedPaginator.max_rows + 1}" in sql for sql in counts), counts
        assert not page.context["cl"].add_facets
    for query in ("pk__gt=1", "name__icontains=a", "at__lt=2026-01-01", "credentials__lookup=x"):
        assert officer.get(f"{list_url(model)}?{query}").status_code == 400, query


def test_a_list_beyond_the_cap_says_so_without_counting(
    officer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CappedPaginator, "max_rows", 3)
    [make.taxpayer() for _ in range(5)]
    response = officer.get(list_url(Taxpayer))
    assert b"The first 3 records. Search or filter to see others." in response.content


def test_a_record_is_found_by_what_it_is_known_by(officer: Client) -> None:
    make.permission()
    [make.system_user() for _ in range(2)]
    owner = make.taxpayer(tin="C77000111", rob="ROB-12345", name="Kedai Runcit Ahmad")
    user = make.system_user(taxpayer=owner, name="Shop till")
    role = make.intermediary(taxpayer__tin="C88000222")
    granted = make.permission(taxpayer=owner, intermediary=role)
    for record, terms in {
        owner: ("c77000", "C77000111", "c77000111:rob-1", "Kedai", "kedai run"),
        user: (user.client_id, user.client_id[:20], "C77000111", "Kedai", "shop"),
        granted: ("C77000111", "c88000222"),
        role: ("C88000222",),
    }.items():
        for term in terms:
            assert listed(officer, type(record), f"?q={term}") == [record], term
        assert listed(officer, type(record), "?q=unknown") == []


def test_lists_are_filtered_by_state_and_end(officer: Client) -> None:
    at, day = timezone.now(), timedelta(days=1)
    blocked = make.system_user(blocked_at=at)
    ended = make.system_user(expires_at=at - day)
    soon, later = (make.system_user(expires_at=at + days * day) for days in (5, 60))
    inactive = make.system_user(taxpayer__is_active=False)
    make.credential()
    endless = make.permission()
    ending = make.permission(valid_until=at + 5 * day)
    over = make.permission(valid_from=at - 14 * day, valid_until=at - 7 * day)
    revoked = make.permission(revoked_at=at - day / 24)
    coming = make.permission(valid_from=at + 7 * day)
    for model, query, rows in (
        (SystemUser, "state=blocked", [blocked]),
        (SystemUser, "state=expired", [ended]),
        (SystemUser, "state=no_secret", [inactive, later, soon, ended, blocked]),
        (SystemUser, "state=taxpayer", [inactive]),
        *((SystemUser, f"state={days}", [soon]) for days in (7, 30)),
        (SystemUser, "state=90", [later, soon]),
        (GrantedPermission, "state=in_force", [ending, endless]),
        (GrantedPermission, "state=7", [ending]),
        (GrantedPermission, "state=expired", [over]),
        (GrantedPermission, "state=revoked", [revoked]),
        (GrantedPermission, "", [coming, revoked, over, ending, endless]),
    ):
        assert listed(officer, model, f"?{query}") == rows, query


def test_a_field_suggests_taxpayers_by_identifier_and_name(officer: Client) -> None:
    [make.taxpayer(name="Borneo Timber") for _ in range(12)]
    wanted = make.taxpayer(tin="C77000111", rob="ROB-12345", name="Kedai Runcit")
    make.intermediary(taxpayer=wanted)
    for model in (Taxpayer, Intermediary):
        for term in ("C7700", "kedai"):
            answer = officer.get(f"{list_url(model)}suggest/?q={term}").json()
            shown = {"value": "C77000111:ROB-12345", "label": "Kedai Runcit"}
            assert answer == {"suggestions": [shown]}
    assert len(officer.get(f"{list_url(Taxpayer)}suggest/?q=borneo").json()["suggestions"]) == 10
    assert officer.get(f"{list_url(Taxpayer)}suggest/?q=C7").json() == {"suggestions": []}
    assert Client().get(f"{list_url(Taxpayer)}suggest/?q=borneo").status_code == 302


@pytest.mark.parametrize("page", ["", "export.csv"])
def test_a_filter_that_the_list_does_not_have_is_named(page: str, officer: Client) -> None:
    answer = officer.get(f"{list_url(SystemUser)}{page}?colour<b>=red")
    content = answer.content.decode()
    assert answer.status_code == 400
    assert "This list has no filter with the name colour&lt;b&gt;." in content
    assert f'href="{list_url(SystemUser)}"' in content.partition("Bad request</h1>")[2]


def test_a_form_that_cannot_be_read_is_a_page_with_a_way_back(officer: Client) -> None:
    sent = {"action": "bulk_block_system_user", "_selected_action": "x"}
    answer = officer.post(list_url(SystemUser), sent)
    assert answer.status_code == 400
    assert "Open the page again and repeat what you did." in answer.content.decode()


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


def test_an_active_filter_has_a_chip_that_removes_it(auditor: Client) -> None:
    for model, query, shown in FILTERED:
        page = page_of(auditor, model, query)
        (chip,) = page.context["chips"]
        assert f"{chip.title}: {chip.value}" == shown
        assert shown in text_of(page)
        assert f"Remove the filter {shown}" in text_of(page)
        assert chip.url == "?"
    for model in {model for model, *_ in FILTERED}:
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
    for title, names in {"Search": "q", "Result": "reason", "Time range": "from to"}.items():
        left = {name: value for name, value in every.items() if name not in names.split()}
        assert parse_qs(chips[title][1:]) == left


@pytest.mark.parametrize(
    ("model", "query"),
    [
        (LoginEvent, "period=99"),
        *((model, "state=99") for model in (SystemUser, GrantedPermission, StaffAccount)),
    ],
)
def test_a_choice_that_a_filter_does_not_have_finds_nothing(
    model: type[Model], query: str, auditor: Client
) -> None:
    """An address may have one of an earlier version; its chip must not stand above all rows."""
    stored_login(timezone.now())
    make.permission()
    make.system_user()
    name = query.partition("=")[0]
    assert page_of(auditor, model, f"{name}=").context["cl"].result_list
    page = page_of(auditor, model, query)
    assert len(page.context["chips"]) == 1
    assert not page.context["cl"].result_list


def export(client: Client, model: Any, query: str = "") -> Any:
    return client.get(f"{list_url(model)}export.csv{query}")


def test_an_export_has_what_the_list_shows(
    registrar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    make.taxpayer(tin="C0000000001", name="One")
    make.taxpayer(tin="C0000000002", rob="R-123", name="Two", is_active=False)
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


def test_no_cell_of_an_export_is_a_formula(registrar: Client) -> None:
    for number, name in enumerate(["=1+1", "+1", "-1", "@sum", "\uff1d1", "plain"]):
        make.taxpayer(tin=f"C000000000{number}", name=name)
    names = [row[2] for row in csv_rows_of(export(registrar, Taxpayer))[1:]]
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
        taxpayer = make.taxpayer(tin=f"C{number % 3:010}", rob=f"R-{9 - number:04}")
        make.system_user(taxpayer=taxpayer)
        make.permission(taxpayer=taxpayer)
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
    return [make.system_user() for _ in range(3)]


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
    block_system_user(system_user=users[0], **why() | {"reason": "before"})
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
