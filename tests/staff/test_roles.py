"""What each role may do, on every page and task, and that the groups are what the table says."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command

from identity.staff.accounts.roles import (
    ACCOUNT_MANAGER,
    DUTY_OF,
    ROLES,
    duties_of,
    must_be_separate,
)
from identity.staff.actions import ACTIONS
from taxpayers.duties import Duty
from tests.servers.processes import CHECKOUT
from tests.support.accounts import new_staff

pytestmark = pytest.mark.django_db


_APPS = ("taxpayers", "tokens", "staff", "webhooks")
_SEEN = {"staff.view_staffaccount", "staff.view_staffsignin"}


def _all_permissions() -> Iterator[str]:
    found = Permission.objects.filter(content_type__app_label__in=_APPS)
    for app, codename in found.values_list("content_type__app_label", "codename"):
        yield f"{app}.{codename}"


def _permissions_of(name: str) -> set[str]:
    permissions = Group.objects.get(name=name).permissions.select_related("content_type")
    return {f"{p.content_type.app_label}.{p.codename}" for p in permissions}


def test_every_change_of_state_has_a_permission_of_its_name() -> None:
    codenames = {name.partition(".")[2] for name in _all_permissions()}
    assert codenames >= {name.partition(".")[2] for name in DUTY_OF}
    others = {name for name, action in ACTIONS.items() if action.duty in (None, Duty.WEBHOOKS)}
    assert ACTIONS.keys() - codenames == others


def test_no_permission_allows_writing_rows_without_the_services() -> None:
    generic = {n for n in _all_permissions() if n.split(".")[1].startswith(("add_", "delete_"))}
    assert generic == set()
    changing = {n.split(".")[1] for n in _all_permissions() if ".change_" in n}
    assert changing <= ACTIONS.keys()


def test_every_permission_belongs_to_a_role() -> None:
    given = frozenset[str]().union(*(role.permissions for role in ROLES.values()))
    assert set(_all_permissions()) == given  # and none of Django's own models


def test_every_permission_to_act_has_one_duty() -> None:
    assert DUTY_OF.keys() == {name for name in _all_permissions() if ".view_" not in name}


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
