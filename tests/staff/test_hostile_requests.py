"""Whatever a page of the staff is sent, it answers: never with an error of the server."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.records import RecordAdmin
from identity.staff.models import StaffAccount
from taxpayers.models import (
    Change,
    GrantedPermission,
    Intermediary,
    PermissionCode,
    SystemUser,
    Taxpayer,
)
from tests.every_address.test_staff import records
from tests.support import make
from tests.support.staff import list_url, task_url
from tokens.models import LoginEvent, SigningKey

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
__all__ = ["records"]  # the fixture

HOSTILE = {
    "NUL": "C\0",
    "very long": "x" * 20_000,
    "a number of 5,000 digits": "9" * 5_000,
    "a big number": str(10**18),
    "a bigger number": str(10**30),
    "a negative number": "-1",
    "foreign digits": "٣",
    "a pattern": "%_[](){}*+?\\'\";--",
    "nested JSON": "[" * 10_000,
    "half a character": "\ud800",
    "a date out of the calendar": "9999-12-31",
}
values = pytest.mark.parametrize("value", [*HOSTILE.values()], ids=[*HOSTILE])
_IN_THE_GATE = 1  # of the values for each page; each value has several pages there
REGISTRY = [Taxpayer, Intermediary, GrantedPermission, PermissionCode, SystemUser]
LISTS: list[type[Model]] = [*REGISTRY, LoginEvent, StaffAccount]
FORMS: list[type[Model]] = [*REGISTRY, SigningKey, StaffAccount]


def each_with_some(*pages: Any) -> Iterator[Any]:
    """Each page with a few of the values, which take turns; with all of them in the long lane."""
    for number, page in enumerate(pages):
        for at, (name, value) in enumerate(HOSTILE.items()):
            is_long = (at - 2 * number) % len(HOSTILE) >= _IN_THE_GATE
            model, *task = page if isinstance(page, tuple) else (page,)
            title = " ".join([getattr(model, "__name__", str(model)), *(t.name for t in task)])
            yield pytest.param(
                page, value, id=f"{title} {name}", marks=[pytest.mark.long] if is_long else []
            )


def check(answer: Any) -> None:
    assert answer.status_code < 500, answer.request
    if answer.streaming:
        b"".join(answer.streaming_content)


def encoded(**parameters: str) -> str:
    return urlencode(parameters, errors="surrogatepass")


def parameters_of(model: type[Model]) -> Iterator[str]:
    yield from ("q", "p", "o", "e", "all", "nothing", "pk", "_facets")
    for spec in admin.site._registry[model].list_filter:
        if isinstance(spec, tuple):
            yield from (f"{spec[0]}__exact", f"{spec[0]}__isnull")
        else:
            several = getattr(spec, "parameter_names", None)
            yield from several or (spec.parameter_name,)  # type: ignore[union-attr]


@pytest.fixture
def client(boss: Client) -> Client:
    """A superuser; an error of the server is an answer, not an exception of the test."""
    boss.raise_request_exception = False
    return boss


@pytest.mark.parametrize(("model", "value"), [*each_with_some(*LISTS)])
def test_a_list_and_its_export(model: type[Model], value: str, client: Client) -> None:
    make.permission()
    has_export = isinstance(admin.site._registry[model], ExportingAdmin)
    for name in parameters_of(model):
        check(client.get(f"{list_url(model)}?{encoded(**{name: value})}"))
        if has_export:
            check(client.get(f"{list_url(model)}export.csv?{encoded(**{name: value})}"))


# Pages that take questions, each with values that are right.
QUESTIONS: dict[str, dict[str, str]] = {
    "taxpayers_taxpayer_suggest": {"q": "C12"},
    "taxpayers_intermediary_suggest": {"q": "C12"},
    "tokens_loginevent_what_if": {"client_id": "{client}", "on_behalf_of": "{tin}", "moment": ""},
    "taxpayers_change_report": dict.fromkeys(("since", "until", "by", "action", "about"), "")
    | {"after": ""},
    "taxpayers_change_export_csv": {"since": "", "until": "", "by": "", "about": ""},
    "taxpayers_change_as_of": {"about": "{tin}", "day": "{today}", "time": "12:00", "p": "1"},
    "ending_soon": {"kind": "secret", "within": "7", "p": "1"},
    "staff_search": {"q": "C12"},
}


@pytest.mark.parametrize(("name", "value"), [*each_with_some(*QUESTIONS)])
def test_a_question(name: str, value: str, client: Client, records: dict[str, Any]) -> None:
    user = records["taxpayers_systemuser"]
    known = {"client": user.client_id, "tin": user.taxpayer.tin, "today": timezone.localdate()}
    Change.objects.create(at=timezone.now() - timedelta(days=9), by="x")  # the history begins
    url = reverse(name if name == "staff_search" else f"admin:{name}")
    right = {field: text.format(**known) for field, text in QUESTIONS[name].items()}
    for field in right:
        check(client.get(f"{url}?{encoded(**right | {field: value})}"))


@values
def test_the_page_of_a_task_of_the_history(value: str, client: Client) -> None:
    check(client.get(f"{list_url(Change)}task/{encoded(a=value)[2:]}/"))


@pytest.mark.parametrize(("model", "value"), [*each_with_some(*LISTS, SigningKey)])
def test_the_page_of_a_record(model: type[Model], value: str, client: Client) -> None:
    name = encoded(a=value)[2:]
    for page in ("change/", "history/", "", "delete/"):
        check(client.get(f"{list_url(model)}{name}/{page}"))


def tasks() -> Iterator[tuple[type[Model], Any]]:
    for model in FORMS:
        pages = admin.site._registry[model]
        assert isinstance(pages, RecordAdmin)
        for task in pages.get_tasks():
            yield model, task


@pytest.mark.parametrize(("page", "value"), [*each_with_some(*tasks())])
def test_a_form(
    page: tuple[type[Model], Any], value: str, client: Client, records: dict[str, Any]
) -> None:
    model, task = page
    row = records[f"{model._meta.app_label}_{model._meta.model_name}"]
    url = task_url(row if task.is_for_record else model, task.name)
    opened = client.get(url)
    check(opened)
    if "form" not in (opened.context or {}):
        return  # the task is not possible now
    form = opened.context["form"]
    filled = {
        field.html_name: sample(field, records) for field in form if field.html_name != "file"
    }
    for sent in (*(filled | {name: value} for name in filled), dict.fromkeys(filled, value)):
        body = urlencode(sent, doseq=True, errors="surrogatepass")
        check(client.post(url, body, "application/x-www-form-urlencoded"))
    check(client.get(f"{url}?{encoded(**dict.fromkeys(filled, value))}"))


def sample(field: Any, records: dict[str, Any]) -> Any:
    """A value with which the form may well be valid."""
    match field.html_name:
        case "taxpayer" | "identifier" | "represented":
            return str(records["taxpayers_taxpayer"].identifier)
        case "intermediary":
            return str(records["taxpayers_intermediary"].taxpayer.identifier)
        case _:
            return field.value() or "2099-01-01"


@values
def test_selected_records(value: str, client: Client) -> None:
    make.credential()
    for action in ("bulk_block_system_user", value):
        for selected in (value, "1"):
            sent = {"action": action, ACTION_CHECKBOX_NAME: selected, "index": value}
            body = urlencode(sent, errors="surrogatepass")
            check(client.post(list_url(SystemUser), body, "application/x-www-form-urlencoded"))


@values
def test_the_sign_in(value: str, client: Client) -> None:
    stranger = Client(raise_request_exception=False)
    for url, fields in {
        "/signin/": ("login", "password", "next"),
        reverse("mfa_login_webauthn"): ("credential",),
        "/language/": ("language", "next"),
    }.items():
        for name in fields:
            sent = {"login": "boss", "password": "wrong"} | {name: value}
            body = urlencode(sent, errors="surrogatepass")
            check(stranger.post(url, body, "application/x-www-form-urlencoded"))
        check(stranger.get(f"{url}?{encoded(next=value)}"))


@pytest.mark.parametrize(
    "credential",
    [
        *(None, 1, [], {}, {"id": 1}, {"response": None}, {"response": {"userHandle": 5}}),
        {"id": "AA", "rawId": "AA", "type": "public-key", "response": {"userHandle": "OTk5"}},
        {"id": "AA", "rawId": "AA", "response": {"userHandle": "OTk5", "clientDataJSON": "e30"}},
        {
            "id": "AA",
            "rawId": "AA",
            "type": "public-key",
            "response": {
                "userHandle": "MQ",
                "clientDataJSON": "e30",
                "authenticatorData": "AAAA",
                "signature": "AA",
            },
        },
    ],
)
def test_the_answer_of_a_passkey(credential: Any, client: Client) -> None:
    stranger = Client(raise_request_exception=False)
    url = reverse("mfa_login_webauthn")
    stranger.get(url, headers={"x-requested-with": "XMLHttpRequest"})
    check(stranger.post(url, {"credential": json.dumps(credential)}))
