"""What each role may do, on every page and task, and that the groups are what the table says."""

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.urls import NoReverseMatch, reverse

from identity.staff.accounts.roles import (
    ACCOUNT_MANAGER,
    DUTY_OF,
    ROLES,
    duties_of,
    must_be_separate,
)
from identity.staff.actions import ACTIONS
from taxpayers.duties import Duty
from taxpayers.models import Change
from tests.servers.processes import CHECKOUT
from tests.support.accounts import new_staff
from tests.support.staff import staff_client


def _all_permissions() -> Iterator[str]:
    for app in ("taxpayers", "tokens", "staff"):
        for model in apps.get_app_config(app).get_models():
            names = [f"{word}_{model._meta.model_name}" for word in model._meta.default_permissions]
            yield from (f"{app}.{name}" for name in names)
            yield from (f"{app}.{codename}" for codename, _ in model._meta.permissions)


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
    assert set(_all_permissions()) <= given


def test_no_role_registers_taxpayers_and_issues_credentials() -> None:
    assert not any(must_be_separate(role.permissions) for role in ROLES.values())


def test_every_permission_to_act_has_one_duty() -> None:
    assert DUTY_OF.keys() == {name for name in _all_permissions() if ".view_" not in name}


def test_what_lets_an_invented_client_in_is_separate_in_every_pair() -> None:
    lets_in = {name for name, duty in DUTY_OF.items() if duty in (Duty.REGISTER, Duty.GRANT)}
    issues = {name for name, duty in DUTY_OF.items() if duty is Duty.ISSUE}
    assert all(must_be_separate([one, other]) for one in lets_in for other in issues)
    assert not must_be_separate(DUTY_OF.keys() - issues)
    assert not must_be_separate(DUTY_OF.keys() - lets_in)


def test_every_role_but_the_viewer_has_a_duty() -> None:
    assert [name for name, role in ROLES.items() if not duties_of(role.permissions)] == ["viewer"]


def test_viewers_and_auditors_change_nothing() -> None:
    for name in ("viewer", "auditor"):
        assert all(
            permission.split(".")[1].startswith(("view_", "export_"))
            for permission in ROLES[name].permissions
        )


def test_only_account_managers_change_accounts_and_they_change_nothing_else() -> None:
    for name, role in ROLES.items():
        staff = {p for p in role.permissions if p.startswith("staff.")}
        changing = {p for p in role.permissions if not p.split(".")[1].startswith("view_")}
        if name == ACCOUNT_MANAGER:
            assert changing == staff - {"staff.view_staffaccount"}
        else:
            assert staff <= {"staff.view_staffaccount"}


def test_no_role_has_a_permission_of_djangos_own_models() -> None:
    apps_of_permissions = {p.split(".")[0] for role in ROLES.values() for p in role.permissions}
    assert apps_of_permissions == {"taxpayers", "tokens", "staff"}


@pytest.mark.django_db
@pytest.mark.parametrize("name", ROLES)
def test_migrate_makes_the_group(name: str) -> None:
    assert _permissions_of(name) == ROLES[name].permissions


@pytest.mark.django_db
def test_migrate_restores_a_group_that_was_changed() -> None:
    viewer = Group.objects.get(name="viewer")
    viewer.permissions.set([Permission.objects.get(codename="rotate_signing_key")])
    Group.objects.get(name="auditor").delete()
    call_command("migrate", verbosity=0)
    assert all(_permissions_of(name) == role.permissions for name, role in ROLES.items())


@pytest.mark.django_db
def test_staff_have_the_permissions_of_their_role() -> None:
    officer = new_staff("security officer")
    assert officer.has_perms(ROLES["security officer"].permissions)
    assert not officer.has_perm("taxpayers.register_taxpayer")


def test_the_documentation_shows_the_table_in_force() -> None:
    permissions = sorted({permission for role in ROLES.values() for permission in role.permissions})
    rows = [
        "| ".join(
            (
                f"| `{name}` ",
                *("x " if name in role.permissions else "  " for role in ROLES.values()),
            )
        )
        + "|"
        for name in permissions
    ]
    head = "| may | " + " | ".join(ROLES) + " |"
    table = "\n".join((head, "| --- |" + " --- |" * len(ROLES), *rows))
    shown = (CHECKOUT / "docs" / "staff.md").read_text(encoding="utf-8")
    assert table in shown, f"put this into docs/staff.md:\n{table}"


# --- Through the pages --------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["add", "change", "delete"])
def test_the_history_cannot_be_edited_even_by_a_superuser(page: str) -> None:
    row = Change.objects.create(by="boss", action="block_system_user", label="x", after={"a": 1})
    try:
        url = reverse(f"admin:taxpayers_change_{page}", args=[] if page == "add" else [row.pk])
    except NoReverseMatch:
        return  # there is not even a page
    staff_client().post(url, {"label": "y", "post": "yes"})
    assert list(Change.objects.values_list("pk", "label")) == [(row.pk, "x")]


@pytest.mark.django_db
def test_the_history_cannot_be_deleted_by_a_bulk_action() -> None:
    row = Change.objects.create(by="boss", action="block_system_user", label="x")
    data = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    staff_client().post(reverse("admin:taxpayers_change_changelist"), data)
    assert Change.objects.filter(pk=row.pk).exists()


@pytest.mark.django_db
def test_a_viewer_does_not_see_the_history() -> None:
    url = reverse("admin:taxpayers_change_changelist")
    assert staff_client("viewer", "azlan").get(url).status_code == 403
    assert staff_client("auditor").get(url).status_code == 200
