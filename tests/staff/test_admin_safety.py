"""Everything in the admin goes through the services, and every task requires its permission."""

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from identity.staff.accounts.roles import ROLES
from identity.staff.actions import ACTIONS
from identity.staff.expiring.extend_tasks import Extend
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.tasks import Task
from identity.staff.models import StaffAccount, WaitingChange
from taxpayers.certificates.names import TLS_CLIENT_AUTH
from taxpayers.client_keys import PRIVATE_KEY_JWT
from taxpayers.models import SystemUser, Taxpayer
from tests.introspection.api import new_api
from tests.support.accounts import new_staff, with_totp
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)
from tests.support.staff import list_url, page_url, staff_client, task_url
from tokens.models import ProtectedApi

pytestmark = pytest.mark.django_db


def own_admins() -> list[RecordAdmin]:
    return [a for a in admin.site._registry.values() if isinstance(a, RecordAdmin)]


def all_tasks() -> list[Task]:
    return [task for record_admin in own_admins() for task in record_admin.get_tasks()]


OUR_APPS = ("taxpayers", "tokens", "staff")
OUR_MODELS = [m for app in OUR_APPS for m in apps.get_app_config(app).get_models()]
FACTORIES: dict[str, Any] = {
    "Taxpayer": TaxpayerFactory,
    "Intermediary": IntermediaryFactory,
    "GrantedPermission": GrantedPermissionFactory,
    "SystemUser": lambda: CredentialFactory.create().system_user,
    "ProtectedApi": lambda: new_api().registered,
    "StaffAccount": lambda: StaffAccount.objects.get(pk=with_totp(new_staff("viewer", "zul")).pk),
}


@pytest.fixture(autouse=True)
def certificates_are_taken(settings: Settings) -> None:
    settings.MTLS_URL = "https://mtls.id.example.org"


# What a system user must log in with for this task.
LOGIN_METHODS = {
    "register_client_key": PRIVATE_KEY_JWT,
    "use_client_secret": PRIVATE_KEY_JWT,
    "register_client_certificate": TLS_CLIENT_AUTH,
}


def prepare_account(task: Task, record: Model) -> None:
    """So that a task for an account is possible."""
    if task.name == "activate_account":
        StaffAccount.objects.update(is_active=False)
    if task.name in ("confirm_account", "decline_account"):
        at = timezone.now()
        given = {"action": "activate_account", "asked_by": "mariam", "reason": "Ticket"}
        WaitingChange.objects.create(
            account_id=record.pk, asked_at=at, expires_at=at + timedelta(days=1), **given
        )


def some_record(task: Task) -> Model:
    record: Model = FACTORIES[task.admin.model.__name__]()
    if task.name == "unblock_system_user":
        SystemUser.objects.update(
            blocked_at="2026-01-01T00:00Z", blocked_by="x", blocked_reason="y"
        )
    if task.name == "activate_taxpayer":
        Taxpayer.objects.update(is_active=False)
    if isinstance(task, Extend):
        ends = dict.fromkeys(task.form.watched.values(), "2099-01-01T00:00Z")
        type(record)._default_manager.update(**ends)
    if task.name == "activate_protected_api":
        ProtectedApi.objects.update(is_active=False)
    if method := LOGIN_METHODS.get(task.name):
        SystemUser.objects.update(token_endpoint_auth_method=method)
    if task.name == "limit_system_user":
        IntermediaryFactory.create(taxpayer=record.taxpayer)  # type: ignore[attr-defined]
    prepare_account(task, record)
    return record


def url_of(task: Task) -> str:
    return task_url(some_record(task) if task.is_for_record else task.admin.model, task.name)


@pytest.mark.parametrize("model", OUR_MODELS, ids=lambda m: m.__name__)
def test_no_model_of_ours_has_an_admin_that_writes(model: type[Model]) -> None:
    if not admin.site.is_registered(model):
        return
    registered = admin.site.get_model_admin(model)
    assert isinstance(registered, RecordAdmin)
    boss: Any = type("Request", (), {"user": type("U", (), {"has_perm": lambda *_: True})()})()
    assert not registered.has_add_permission(boss)
    assert not registered.has_change_permission(boss)
    assert not registered.has_delete_permission(boss)
    assert registered.get_actions(boss).keys().isdisjoint({"delete_selected"})


@pytest.mark.parametrize("path", ["add/", "{pk}/delete/", "{pk}/change/"])
def test_posting_to_the_addresses_of_djangos_own_forms_changes_nothing(path: str) -> None:
    taxpayer = TaxpayerFactory.create(name="Before")
    url = list_url(Taxpayer) + path.format(pk=taxpayer.pk)
    staff_client().post(url, {"tin": "C999999", "name": "After", "post": "yes"})
    assert [row.name for row in Taxpayer.objects.all()] == ["Before"]


def test_every_task_has_the_name_of_its_action_in_the_history() -> None:
    actions = {task.action or task.name for task in all_tasks()}
    assert actions <= ACTIONS.keys()


def test_the_toolkits_own_pages_are_gone() -> None:
    models = apps.get_app_config("oauth2_provider").get_models()
    assert not [model for model in models if admin.site.is_registered(model)]


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.url_name)
def test_each_task_opens_for_a_role_that_may_do_it(task: Task) -> None:
    """For which others, and for which not: tests/every_address/test_staff.py."""
    url = url_of(task)
    role = next(name for name, r in ROLES.items() if task.permission in r.permissions)
    assert staff_client(role).get(url).status_code == 200


@pytest.mark.parametrize(
    "role", [name for name, r in ROLES.items() if "taxpayers.view_systemuser" in r.permissions]
)
def test_a_page_offers_only_what_the_role_may_do(role: str) -> None:
    user = CredentialFactory.create().system_user
    buttons = staff_client(role).get(page_url(user)).context["buttons"]
    offered = {button.url.rstrip("/").rsplit("/", 1)[-1] for button in buttons}
    needed = {task.permission for task in all_tasks() if task.name in offered}
    assert needed <= ROLES[role].permissions
    assert ("block_system_user" in offered) == (
        "taxpayers.block_system_user" in ROLES[role].permissions
    )


def test_the_history_is_hidden_from_roles_that_may_not_see_it() -> None:
    user = SystemUserFactory.create()
    assert b'id="history"' not in staff_client("viewer").get(page_url(user)).content
    assert b'id="history"' in staff_client("auditor", "ravi").get(page_url(user)).content


@pytest.mark.parametrize("record_admin", own_admins(), ids=lambda a: a.model.__name__)
def test_nobody_sees_a_list_without_signing_in(record_admin: RecordAdmin) -> None:
    assert Client().get(list_url(record_admin.model)).status_code == 302


@pytest.mark.parametrize("role", [None, *ROLES])
def test_the_sidebar_links_to_staff_accounts_for_roles_that_may_see_them(role: str | None) -> None:
    client = staff_client(role)
    page = client.get(reverse("admin:index")).content.decode()
    may = role is None or "staff.view_staffaccount" in ROLES[role].permissions
    url = list_url(StaffAccount)
    assert (f'href="{url}"' in page) is may
    assert client.get(url).status_code == (200 if may else 403)


def not_found_text(response: Any) -> str:
    """The text of a page that is not there."""
    assert (response.status_code, response["Content-Type"]) == (404, "text/html; charset=utf-8")
    return unescape(response.content.decode())


def test_a_record_that_does_not_exist_is_a_page_that_says_so() -> None:
    client = staff_client()
    for path in ("4711/change/", "4711/block_system_user/", "nonsense/change/"):
        page = not_found_text(client.get(list_url(SystemUser) + path))
        assert "This record does not exist." in page
        assert list_url(Taxpayer) in page  # with the sidebar: the way on is not lost
    page = not_found_text(client.get(task_url(Taxpayer, "import_registry") + "?upload=1"))
    assert "This upload has expired. Upload the file again." in page


def test_nothing_meant_for_developers_is_on_the_page_of_a_404() -> None:
    client = staff_client()
    foreign_key = reverse("mfa_remove_webauthn", args=[4711])
    for path in ("/admin/nothing/at/all/", "/signin/nothing/", foreign_key):
        page = not_found_text(client.get(path))
        assert "There is no page at this address." in page
        assert f'href="{reverse("admin:index")}"' in page
        for leaked in ("URLResolver", "tried", "matches the given query"):
            assert leaked not in page
    assert "no page at this address" in not_found_text(Client().get("/signin/nothing/"))


def test_a_404_elsewhere_is_json() -> None:
    for path in ("/nothing", "/administration/", "/connect/nothing"):
        response = Client().get(path, headers={"Accept": "text/html"})
        assert (response.status_code, response["Content-Type"]) == (404, "application/json")
