"""Everything in the admin goes through the services, and a page offers only what opens."""

from html import unescape
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from identity.staff.accounts.roles import ROLES
from identity.staff.framework.records import RecordAdmin
from identity.staff.models import StaffAccount
from taxpayers.models import Change, PermissionCode, SystemUser, Taxpayer
from tests.support.accounts import new_staff
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    ProtectedApiSecretFactory,
    TaxpayerFactory,
)
from tests.support.staff import list_url, page_url, staff_client, task_url

pytestmark = pytest.mark.django_db
OUR_APPS = ("taxpayers", "tokens", "staff")
OUR_MODELS = [m for app in OUR_APPS for m in apps.get_app_config(app).get_models()]
ADMINS = [pages for pages in admin.site._registry.values() if isinstance(pages, RecordAdmin)]


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


@pytest.mark.parametrize("page", ["add/", "{pk}/delete/", "{pk}/change/", ""])
@pytest.mark.parametrize("model", [Taxpayer, Change])
def test_a_superuser_edits_and_deletes_nothing_by_djangos_own_forms(
    model: Any, page: str, boss: Client
) -> None:
    TaxpayerFactory.create(name="Before")
    Change.objects.create(by="boss", action="block_system_user", label="x", after={"a": 1})
    before = list(model.objects.values())
    url = list_url(model) + page.format(pk=before[0]["id"])
    changed = {"tin": "C999999", "name": "After", "label": "y", "post": "yes"}
    bulk = {"action": "delete_selected", "_selected_action": [before[0]["id"]]}
    boss.post(url, changed if page else changed | bulk)
    assert list(model.objects.values()) == before


def test_the_toolkits_own_pages_are_gone() -> None:
    models = apps.get_app_config("oauth2_provider").get_models()
    assert not [model for model in models if admin.site.is_registered(model)]


@pytest.mark.parametrize("role", ROLES)
def test_each_role_is_offered_its_lists_and_on_every_page_only_what_opens(role: str) -> None:
    client = staff_client(role, "aminah")
    secret, permission = CredentialFactory.create(), GrantedPermissionFactory.create()
    api = ProtectedApiSecretFactory.create().protected_api
    account = StaffAccount.objects.get(pk=new_staff("viewer", "zul").pk)
    user = secret.system_user
    records = (user, user.taxpayer, permission, permission.intermediary, api, account)
    first = client.get(reverse("admin:index")).content.decode()
    offered: set[str] = set()
    for pages in ADMINS:
        url, opts = pages.list_url(), pages.model._meta
        may = f"{opts.app_label}.view_{opts.model_name}" in ROLES[role].permissions
        changes_codes = "taxpayers.set_permission_code" in ROLES[role].permissions
        in_menu = may and (changes_codes or pages.model is not PermissionCode)
        assert (f'href="{list_url(pages.model)}"' in first) is in_menu, url
        if may:
            shown = [url, *(page_url(row) for row in records if isinstance(row, pages.model))]
            buttons = [b for page in shown for b in client.get(page).context.get("buttons", ())]
            offered |= {button.url for button in buttons if "/export." not in button.url}
    assert [url for url in offered if client.get(url).status_code not in (200, 302)] == []
    may_block = "taxpayers.block_system_user" in ROLES[role].permissions
    assert (task_url(user, "block_system_user") in offered) is may_block
    if role != "account manager":
        has_history = b'id="history"' in client.get(page_url(user)).content
        assert has_history is ("taxpayers.view_change" in ROLES[role].permissions)


def not_found_text(response: Any) -> str:
    """The text of a page that is not there."""
    assert (response.status_code, response["Content-Type"]) == (404, "text/html; charset=utf-8")
    return unescape(response.content.decode())


def test_a_record_that_does_not_exist_is_a_page_that_says_so(boss: Client) -> None:
    for path in ("4711/change/", "4711/block_system_user/", "nonsense/change/"):
        page = not_found_text(boss.get(list_url(SystemUser) + path))
        assert "This record does not exist." in page
        assert list_url(Taxpayer) in page  # with the sidebar: the way on is not lost
    page = not_found_text(boss.get(task_url(Taxpayer, "import_registry") + "?upload=1"))
    assert "This upload has expired. Upload the file again." in page


def test_nothing_meant_for_developers_is_on_the_page_of_a_404(boss: Client) -> None:
    foreign_key = reverse("mfa_remove_webauthn", args=[4711])
    for path in ("/admin/nothing/at/all/", "/signin/nothing/", foreign_key):
        page = not_found_text(boss.get(path))
        assert "There is no page at this address." in page
        assert f'href="{reverse("admin:index")}"' in page
        for leaked in ("URLResolver", "tried", "matches the given query"):
            assert leaked not in page
    assert "no page at this address" in not_found_text(Client().get("/signin/nothing/"))
    for path in ("/nothing", "/administration/", "/connect/nothing"):  # elsewhere it is JSON
        response = Client().get(path, headers={"Accept": "text/html"})
        assert (response.status_code, response["Content-Type"]) == (404, "application/json")
