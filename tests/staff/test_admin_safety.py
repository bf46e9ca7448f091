"""Everything in the admin goes through the services; who may do what."""

from html import unescape
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from identity.staff.accounts.roles import (
    ACCOUNT_MANAGER,
    DUTY_OF,
    ROLES,
    duties_of,
    must_be_separate,
)
from identity.staff.actions import ACTIONS
from identity.staff.framework.records import RecordAdmin
from taxpayers.duties import Duty
from taxpayers.models import Change, SystemUser, Taxpayer
from tests.servers.processes import CHECKOUT
from tests.support import make
from tests.support.accounts import new_staff
from tests.support.staff import list_url, task_url

pytestmark = pytest.mark.django_db
ADMINS = [pages for pages in admin.site._registry.values() if isinstance(pages, RecordAdmin)]


def test_each_list_has_a_title() -> None:
    assert [pages for pages in ADMINS if not pages.list_title()] == []


def test_no_admin_writes_and_those_of_django_and_the_toolkit_are_gone(rf: Any) -> None:
    request = rf.get("/")
    request.user = new_staff()
    for pages in admin.site._registry.values():
        assert isinstance(pages, RecordAdmin), pages
        assert not pages.has_add_permission(request)
        assert not pages.has_change_permission(request)
        assert not pages.has_delete_permission(request)
        assert "delete_selected" not in pages.get_actions(request)


@pytest.mark.parametrize("page", ["add/", "{pk}/delete/", "{pk}/change/", ""])
@pytest.mark.parametrize("model", [Taxpayer, Change])
def test_a_superuser_edits_and_deletes_nothing_by_djangos_own_forms(
    model: Any, page: str, boss: Client
) -> None:
    make.taxpayer(name="Before")
    Change.objects.create(by="boss", action="block_system_user", label="x", after={"a": 1})
    before = list(model.objects.values())
    url = list_url(model) + page.format(pk=before[0]["id"])
    changed = {"tin": "C999999", "name": "After", "label": "y", "post": "yes"}
    bulk = {"action": "delete_selected", "_selected_action": [before[0]["id"]]}
    boss.post(url, changed if page else changed | bulk)
    assert list(model.objects.values()) == before


def not_found_text(response: Any) -> str:
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


_APPS = ("taxpayers", "tokens", "staff", "webhooks")
_SEEN = {"staff.view_staffaccount", "staff.view_staffsignin"}


def _permissions_of(name: str) -> set[str]:
    permissions = Group.objects.get(name=name).permissions.select_related("content_type")
    return {f"{p.content_type.app_label}.{p.codename}" for p in permissions}


def test_every_permission_to_act_has_one_duty() -> None:
    """It is that of an action, so none allows to write rows without the services."""
    found = Permission.objects.filter(content_type__app_label__in=_APPS)
    names = found.values_list("content_type__app_label", "codename")
    everything = {f"{app}.{codename}" for app, codename in names}
    assert {name for name in everything if ".view_" not in name} == DUTY_OF.keys()
    without = {name for name, action in ACTIONS.items() if action.duty in (None, Duty.WEBHOOKS)}
    assert ACTIONS.keys() - {name.partition(".")[2] for name in DUTY_OF} == without
    given = frozenset[str]().union(*(role.permissions for role in ROLES.values()))
    assert everything == given  # each belongs to a role, and none is of Django's own models


def test_what_lets_an_invented_client_in_is_separate_in_every_pair() -> None:
    lets_in = {name for name, duty in DUTY_OF.items() if duty in (Duty.REGISTER, Duty.GRANT)}
    issues = {name for name, duty in DUTY_OF.items() if duty is Duty.ISSUE}
    assert all(must_be_separate([one, other]) for one in lets_in for other in issues)
    assert not must_be_separate(DUTY_OF.keys() - issues)
    assert not must_be_separate(DUTY_OF.keys() - lets_in)


def test_what_each_role_changes() -> None:
    assert [name for name, role in ROLES.items() if not duties_of(role.permissions)] == ["viewer"]
    for name, role in ROLES.items():
        assert not must_be_separate(role.permissions)  # none registers taxpayers and issues
        staff = {p for p in role.permissions if p.startswith("staff.")}
        changing = {p for p in role.permissions if not p.split(".")[1].startswith("view_")}
        if name in ("viewer", "auditor"):
            assert all(p.split(".")[1].startswith("export_") for p in changing)
        if name == ACCOUNT_MANAGER:
            assert changing == staff - _SEEN
        else:
            assert staff <= _SEEN


def test_migrate_makes_the_groups_and_restores_one_that_was_changed() -> None:
    assert {name: _permissions_of(name) for name in ROLES} == {
        name: role.permissions for name, role in ROLES.items()
    }
    assert new_staff("security officer").has_perms(ROLES["security officer"].permissions)
    viewer = Group.objects.get(name="viewer")
    viewer.permissions.set([Permission.objects.get(codename="rotate_signing_key")])
    Group.objects.get(name="auditor").delete()
    call_command("migrate", verbosity=0)
    assert all(_permissions_of(name) == role.permissions for name, role in ROLES.items())


def test_the_documentation_shows_the_table_in_force() -> None:
    rows: dict[str, list[str]] = {}
    for name in sorted({name for role in ROLES.values() for name in role.permissions}):
        who = ", ".join(role for role in ROLES if name in ROLES[role].permissions)
        rows.setdefault(who, []).append(f"`{name}`")
    lines = (f"| {', '.join(names)} | {who} |" for who, names in rows.items())
    table = "\n".join(("| may | who |", "| --- | --- |", *lines))
    shown = (CHECKOUT / "docs" / "staff.md").read_text(encoding="utf-8")
    assert table in shown, f"put this into docs/staff.md:\n{table}"
