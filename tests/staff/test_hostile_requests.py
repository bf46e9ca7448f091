"""Whatever a page of the staff is sent, it answers: never with an error of the server."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.records import RecordAdmin
from identity.staff.models import StaffAccount, StaffSignIn, WaitingChange
from identity.webhooks.models import WebhookEndpoint
from taxpayers.models import (
    Change,
    GrantedPermission,
    Intermediary,
    PermissionCode,
    SystemUser,
    Taxpayer,
)
from tests.every_address.test_staff import NEEDED, records, url_of
from tests.support import make
from tests.support.accounts import new_staff, with_totp
from tests.support.erp import new_erp
from tests.support.staff import list_url, opened, task_url
from tokens.keys.store import read_key_ring
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
    """What the list reads of its query."""
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


# Each is another text, so that it is known which of them a page shows.
TEXTS = (
    *("taxpayer", "agent", "system-user", "blocked-by", "blocked-reason", "author", "reason"),
    *("label", "before", "user-agent", "api", "account", "asked-by", "why-asked", "code"),
    *("revoked-by", "revoked-why", "reference", "hook", "program"),
    *("search", "person", "cell", "file", "filter"),  # sent, not stored
)


def hostile(name: str) -> str:
    return f'"><x-{name}>'


@pytest.fixture
def canaries(settings: Settings) -> dict[str, Model]:
    """One of each kind, with such a text in every field that holds one."""
    settings.MTLS_URL = "https://mtls.id.example.org"
    at, soon = timezone.now(), timezone.now() + timedelta(days=9)
    role = make.intermediary(taxpayer__name=hostile("agent"), active_until=soon)
    erp = new_erp(taxpayer=role.taxpayer, name=hostile("system-user"), expires_at=soon)
    user = erp.system_user
    blocked = {"blocked_by": hostile("blocked-by"), "blocked_reason": hostile("blocked-reason")}
    SystemUser.objects.filter(pk=user.pk).update(blocked_at=at, **blocked)
    erp.login(headers={"user-agent": hostile("user-agent")})
    permission = make.permission(
        intermediary=role, taxpayer__name=hostile("taxpayer"), valid_until=soon
    )
    revoked = make.permission(intermediary=role, revoked_at=at)
    change = {"by": hostile("author"), "reason": hostile("reason"), "label": hostile("label")}
    renamed = {"before": {"name": hostile("before")}, "after": {"name": "x"}}
    ended = {"by": hostile("revoked-by"), "reason": hostile("revoked-why")}
    for row, action, values in (
        (permission.taxpayer, "rename_taxpayer", renamed),
        (user, "change_system_user", renamed),
        (revoked, "revoke_permission", ended),
        (permission, "extend_permission", renamed),
    ):
        kind = row._meta.model_name
        about = {"action": action, "object_type": kind, "object_id": row.pk, "at": at}
        Change.objects.create(**change | about | values)
    api = make.api_secret(protected_api__name=hostile("api")).protected_api
    account = with_totp(new_staff("viewer", "canary"))
    account.first_name = hostile("account")
    account.save()
    asked = {"asked_by": hostile("asked-by"), "reason": hostile("why-asked")}
    WaitingChange.objects.create(
        account_id=account.pk, action="activate_account", asked_at=at, expires_at=soon, **asked
    )
    PermissionCode.objects.update(description=hostile("code"))
    made: list[Model] = [
        *(user, permission.taxpayer, permission, role, api, PermissionCode.objects.all()[0]),
        *(Change.objects.latest("pk"), LoginEvent.objects.latest("pk")),
        make.permission_request(intermediary=role, own_reference=hostile("reference")),
        account,
        WebhookEndpoint.objects.create(url="https://x", created_at=at, description=hostile("hook")),
        StaffSignIn.objects.create(at=at, outcome="signed in", program=hostile("program")),
    ]
    return {f"{row._meta.app_label}_{row._meta.model_name}": row for row in made}


def pages(client: Client, records: dict[str, Model]) -> Any:
    """Every page of the staff that shows what is stored, and those that show what was sent."""
    read_key_ring(timezone.now())  # makes the first one
    records["tokens_signingkey"] = SigningKey.objects.get()
    for name in NEEDED:
        if not name.endswith(("_csv", "_xlsx", "_suggest")):
            yield client.get(url_of(name, records), follow=True)
    user: Any = records["taxpayers_systemuser"]
    permission: Any = records["taxpayers_grantedpermission"]
    text, today = hostile("search"), f"{timezone.localdate()}"
    for url, query in {
        "/admin/": {},
        "/admin/search/": {"q": text},
        "/admin/search/ ": {"q": "x-"},
        "/admin/ending-soon/": {"within": "90"},
        f"{list_url(Taxpayer)}": {"q": text},
        f"{list_url(LoginEvent)}": {"q": user.taxpayer.tin, "reason": hostile("filter")},
        f"{list_url(Change)}report/": {"by": hostile("person")},
        f"{list_url(Change)}report/ ": {},
        f"{list_url(Change)}as_of/": {"about": user.client_id, "day": today},
        f"{list_url(Change)}as_of/ ": {"about": permission.taxpayer.tin, "day": today},
        f"{list_url(LoginEvent)}what_would_happen/": {"client_id": user.client_id},
    }.items():
        yield client.get(url.strip(), query)
    for row, task in ((user, "extend_system_user"), (permission, "revoke_permission")):
        sent = {"action": f"bulk_{task}", "_selected_action": row.pk}
        yield client.post(list_url(type(row)), sent)
    rotate = task_url(user, "rotate_secret")
    yield client.post(rotate, opened(client, rotate) | {"reason": "x"})
    rows = f"tin,name\nC0000000009,{hostile('cell')[2:]}\n"
    file = SimpleUploadedFile(f"{hostile('file')[2:]}.csv", rows.encode())
    yield client.post(task_url(Taxpayer, "import_registry"), {"file": file}, follow=True)


def test_a_hostile_text_is_only_a_text_on_every_page(
    boss: Client, canaries: dict[str, Model]
) -> None:
    wrong, seen = [], set()
    for page in pages(boss, canaries):
        content = page.content.decode()
        path = page.request["PATH_INFO"]
        wrong += [(path, name) for name in TEXTS if f"<x-{name}" in content]
        seen |= {name for name in TEXTS if f"&lt;x-{name}&gt;" in content}
    assert wrong == []
    assert seen == {*TEXTS}
