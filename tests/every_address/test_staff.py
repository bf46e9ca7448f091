"""Each role at each address of the staff, found by the URL configuration, and what it may not see.

An address that is no task and not in these tables makes a test fail: decide first who may open it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpResponseForbidden
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, resolve, reverse
from django.utils import timezone
from pytest_django import Settings

from identity.staff.accounts.roles import ROLES
from identity.staff.models import StaffSignIn
from identity.webhooks.models import WebhookEndpoint
from taxpayers.models import Change, PermissionCode
from tests.introspection.api import new_api
from tests.staff.test_admin_safety import ADMINS
from tests.support import make
from tests.support.accounts import new_staff, signed_in, with_totp
from tests.support.factories import stored_login
from tests.support.staff import staff_client
from tokens.keys.store import read_key_ring
from tokens.models import ProtectedApi, SigningKey

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_refusals")]
NOBODY = "nobody"
# The tasks on the pages of each kind of record, with the permission that each needs: that of the
# action of its record, which test_records.py compares with the roles.
TASKS = {
    f"{pages.opts.app_label}_{pages.opts.model_name}": {
        task.name: task.permission for task in pages.get_tasks()
    }
    for pages in ADMINS
}
EXPORTS = {
    "taxpayers_taxpayer": "taxpayers.export_registry",
    "taxpayers_intermediary": "taxpayers.export_registry",
    "taxpayers_grantedpermission": "taxpayers.export_registry",
    "taxpayers_systemuser": "taxpayers.export_registry",
    "taxpayers_change": "taxpayers.export_registry",
    "tokens_loginevent": "tokens.export_logins",
    "staff_staffaccount": "taxpayers.export_registry",
    "staff_staffsignin": "taxpayers.export_registry",
}
# Pages besides: what each needs.
OTHERS: dict[str, set[str]] = {
    "taxpayers_taxpayer_suggest": {"taxpayers.view_taxpayer"},
    "taxpayers_intermediary_suggest": {"taxpayers.view_intermediary"},
    "taxpayers_change_report": {"taxpayers.view_change"},
    "taxpayers_change_task": {"taxpayers.view_change"},
    "taxpayers_change_as_of": {
        "taxpayers.view_change",
        "taxpayers.view_taxpayer",
        "taxpayers.view_systemuser",
    },
    "tokens_loginevent_what_if": {"tokens.view_loginevent"},
    "ending_soon": {"taxpayers.view_systemuser"},
}
# For all staff: each shows what the role may see.
FOR_ALL_STAFF = {"index", "staff_search", "jsi18n"}
# Addresses of Django and of the theme that lead elsewhere, or to nothing.
LEAD_ELSEWHERE = {
    *("autocomplete", "view_on_site", "search", "app_list", "logout", "login"),
    *("password_change", "password_change_done"),
}
READ = ("changelist", "change", "history")
CLOSED = ("add", "delete")  # Django's own forms


def needed() -> dict[str, set[str]]:
    table = dict(OTHERS)
    for kind, tasks in TASKS.items():
        app, _, model = kind.partition("_")
        view = f"{app}.view_{model}"
        table |= {f"{kind}_{page}": {view} for page in READ}
        table |= {f"{kind}_{page}": {NOBODY} for page in CLOSED}
        table |= {f"{kind}_{task}": {permission, view} for task, permission in tasks.items()}
        if kind in EXPORTS:
            for form in ("csv", "xlsx"):
                table[f"{kind}_export_{form}"] = {EXPORTS[kind], view}
    return table


NEEDED = needed()


def addresses(resolver: Any = None, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The pattern and the name of each address that is served to staff."""
    for pattern in (resolver or get_resolver("identity.staff.urls")).url_patterns:
        whole = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern, whole)
        else:
            assert isinstance(pattern, URLPattern)
            yield whole, pattern.name or ""


@pytest.fixture
def records(settings: Settings) -> dict[str, Model]:
    settings.MTLS_URL = "https://mtls.id.example.org"
    user = make.credential().system_user
    permission = make.permission()
    account = with_totp(new_staff("viewer", "canary.account"))
    account.first_name = "Canary-of-account"
    account.save()
    about = {"object_type": "systemuser", "object_id": str(user.pk), "action": "block_system_user"}
    change = Change.objects.create(by="canary.author", reason="canary-of-history", **about)
    read_key_ring(timezone.now())  # makes the first key
    api = new_api().registered
    ProtectedApi.objects.filter(pk=api.pk).update(name="canary-of-api")
    made: list[Model] = [
        *(user, user.taxpayer, permission, permission.intermediary, change),
        stored_login(client_id="canary-of-login"),
        PermissionCode.objects.all()[0],
        SigningKey.objects.get(),
        ProtectedApi.objects.get(pk=api.pk),
        make.permission_request(),
        account,
        WebhookEndpoint.objects.create(
            url="https://canary.webhook", created_at=timezone.now(), client_id="x"
        ),
        StaffSignIn.objects.create(at=timezone.now(), outcome="signed in", program="canary-agent"),
    ]
    return {f"{row._meta.app_label}_{row._meta.model_name}": row for row in made}


@pytest.fixture
def plain_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of refusals: what their page shows (test_login_list.py) takes longest."""
    page = "identity.staff.urls.handler403"
    monkeypatch.setattr(page, lambda *_, **__: HttpResponseForbidden())


def url_of(name: str, records: dict[str, Model]) -> str:
    if name == "staff_search":
        return reverse(name)
    try:
        return reverse(f"admin:{name}")
    except NoReverseMatch:  # it is about a record
        kind = next(kind for kind in TASKS if name.startswith(f"{kind}_"))
        return reverse(f"admin:{name}", args=[records[kind].pk])


def test_who_may_open_each_address_is_decided() -> None:
    of_admin = {name for path, name in addresses() if path.startswith("admin/") and name}
    assert of_admin == set(NEEDED) | FOR_ALL_STAFF | LEAD_ELSEWHERE


SEEN_WITH = {
    "canary-of-history": {"taxpayers.view_change"},
    "canary-of-login": {"tokens.view_loginevent"},
    "canary.webhook": {"webhooks.view_webhookendpoint"},
    "canary-agent": {"staff.view_staffsignin"},
    "canary-of-api": {"tokens.view_protectedapi"},
    "Canary-of-account": {"staff.view_staffaccount", "taxpayers.view_change"},
}


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_each_role_opens_its_addresses_and_no_other(role: str, records: dict[str, Model]) -> None:
    """Who may open a page may also send its form, and every button that is offered leads to one.

    What the role may not see is on no page of them, nor found by the search.
    """
    held, client = ROLES[role].permissions, staff_client(role)
    wrong: list[Any] = []
    seen, offered = set[str](), set[str]()
    for name in (*NEEDED, *FOR_ALL_STAFF):
        may = NEEDED.get(name, set()) <= held
        for method in ("get",) if may else ("get", "post"):
            answer = getattr(client, method)(url_of(name, records))
            if (answer.status_code != 403) != may or answer.status_code >= 500:
                wrong.append((name, method, answer.status_code, may))
            seen |= words_of(answer)
            offered |= {button.url for button in (answer.context or {}).get("buttons", ())}
    assert not wrong
    opened = {url: client.get(url).status_code for url in offered if "/export." not in url}
    assert [url for url, status in opened.items() if status not in (200, 302)] == []
    paths = (url.partition("?")[0] for url in offered)
    names = {resolve(path, "identity.staff.urls").url_name or "" for path in paths}
    assert [name for name in names if not NEEDED[name] <= held] == []
    assert ("taxpayers_systemuser_block_system_user" in names) is (
        "taxpayers.block_system_user" in held
    )
    for word in SEEN_WITH:
        seen |= words_of(client.get(f"{reverse('staff_search')}?q={word}"))
    assert seen == {word for word, needs in SEEN_WITH.items() if needs & held}
    menu = client.get(reverse("admin:index")).content.decode()
    for kind in TASKS:
        # Codes are on it for those who change them.
        in_menu = "set_permission_code" if kind == "taxpayers_permissioncode" else "changelist"
        is_shown = f'href="{url_of(f"{kind}_changelist", records)}"' in menu
        assert is_shown is (NEEDED[f"{kind}_{in_menu}"] <= held), kind


def words_of(answer: Any) -> set[str]:
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return {word for word in SEEN_WITH if re.search(f"{word}<|,{word}".encode(), content)}


OPEN_BEFORE_SIGN_IN = {"mfa_authenticate", "mfa_login_webauthn"}


def of_sign_in() -> Iterator[str]:
    """The address of each page of one's own second step."""
    for pattern, name in addresses():
        if pattern.startswith("signin/second/") and name not in OPEN_BEFORE_SIGN_IN:
            yield reverse(name, args=[4711] if "<" in pattern else [])


def assert_only_the_sign_in_opens(client: Client, urls: Iterable[str], *methods: str) -> None:
    before = Change.objects.count()
    for url in urls:
        for method in methods:
            answer = getattr(client, method)(url)
            if answer.status_code != 405:
                assert answer.status_code == 302, (url, method)
                # The admin leads to its own sign-in, which leads to ours.
                assert answer["Location"].startswith(("/signin/", "/admin/login/")), url
    assert Change.objects.count() == before


def test_a_stranger_is_led_to_the_sign_in_from_everywhere(records: dict[str, Model]) -> None:
    urls = [url_of(name, records) for name in [*NEEDED, *FOR_ALL_STAFF]]
    assert_only_the_sign_in_opens(Client(), [*urls, *of_sign_in()], "get", "post")


@pytest.mark.slow
@pytest.mark.parametrize("state", ["without a second step", "deactivated", "no longer staff"])
def test_a_session_that_is_not_complete_opens_nothing(
    state: str, records: dict[str, Model], settings: Settings
) -> None:
    settings.SECOND_FACTOR_REQUIRED = True
    boss = new_staff("", "half")
    client = signed_in(boss if state == "without a second step" else with_totp(boss))
    field = {"deactivated": "is_active", "no longer staff": "is_staff"}.get(state)
    if field:
        User.objects.filter(pk=boss.pk).update(**{field: False})
    urls = [url_of(name, records) for name in [*NEEDED, *FOR_ALL_STAFF]]
    assert_only_the_sign_in_opens(client, urls, "post")
