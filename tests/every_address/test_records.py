"""Each operation has one record: every door says its texts, and asks for its duty."""

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class

from identity.api.imports.view import ImportView
from identity.api.openapi import describe
from identity.api.urls import records as addresses
from identity.staff.accounts.roles import ROLES, duties_of
from identity.staff.framework.tasks import Task
from identity.staff.system_users.secret_tasks import SecretTask
from taxpayers.operations import Operation
from taxpayers.services import IMPORT_KINDS
from tests.staff.test_admin_safety import ADMINS

# (the door, its record, what it says)
Said = tuple[str, Operation, str]


def tasks() -> list[Task]:
    return [task for pages in ADMINS for task in pages.get_tasks()]


def on_pages() -> Iterator[Said]:
    for task in tasks():
        is_short = isinstance(task, SecretTask)  # the page names the secret
        title = task.operation.title if is_short else task.title
        yield task.admin.url_name(task.name), task.operation, f"{title}. {task.description}"


def in_openapi() -> Iterator[Said]:
    paths = describe(addresses)["paths"]
    for pattern in addresses:
        view: Any = pattern.callback
        given = view.view_initkwargs
        if view.cls is ImportView:
            record = IMPORT_KINDS[given["name"]].operation
        elif given.get("task"):
            record = given["task"].operation
        else:
            continue
        path = re.sub(r"<\w+:(\w+)>", r"{\1}", f"/{pattern.pattern}")
        method = "patch" if "patch" in given.get("http_method_names", ()) else "post"
        found = paths[path][method]
        yield found["operationId"], record, f"{found['summary']}. {found.get('description', '')}"


def in_help() -> Iterator[Said]:
    for name, app in get_commands().items():
        command: Any = load_command_class(app, name)
        if (record := vars(type(command)).get("operation")) is not None:
            yield name, record, command.create_parser("manage.py", name).description or ""


@pytest.mark.parametrize("door", [on_pages, in_openapi, in_help])
def test_every_door_says_what_the_record_says(door: Any) -> None:
    said = list(door())
    assert len(said) > 20
    wrong = [
        name
        for name, record, text in said
        if not text.startswith(f"{record.title}. {record.effect}".strip())
    ]
    assert not wrong


def test_each_record_has_a_door() -> None:
    on_doors = {id(record) for door in (on_pages, in_openapi, in_help) for _, record, *_ in door()}
    ours = {
        id(value): value.name
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in ("identity", "tokens", "taxpayers")
        for value in vars(module).values()
        if isinstance(value, Operation)
    } | {id(kind.operation): kind.operation.name for kind in IMPORT_KINDS.values()}
    assert on_doors == ours.keys()


def test_an_operator_can_do_what_staff_and_programs_can() -> None:
    """Some by a command with another name, which does several: an import, or a change."""
    by_command = {record.name for _, record, _ in in_help()}
    others = {record.name for door in (on_pages, in_openapi) for _, record, _ in door()}
    change_system_user = {
        *("change_system_user", "limit_system_user", "extend_system_user", "bind_tokens"),
        *("end_system_user_earlier", "use_private_key", "use_certificate", "use_client_secret"),
    }
    imports = {kind.operation.name for kind in IMPORT_KINDS.values()}
    # rotate_signing_key --compromised; repeat_webhook sends all that was given up
    switches = {"stop_compromised_key", "resend_webhook"}
    own = {"change_own_password", "change_own_second_step"}
    assert others - by_command - own == {*change_system_user, *imports, *switches}


def test_the_duty_of_the_record_opens_its_page() -> None:
    """And its address: tests/management_api/test_every_operation.py."""
    for task in tasks():
        opens = {name for name, role in ROLES.items() if task.permission in role.permissions}
        duty = task.operation.duty
        assert opens == {n for n, r in ROLES.items() if duty in duties_of(r.permissions)}, task.name


def test_what_ends_something_at_once_has_a_red_button() -> None:
    ends = ("block_", "deactivate_", "decline_", "revoke_", "stop_", "undo_")
    red = {task.name for task in tasks() if task.variant == "danger"}
    others = {"decline_account"}  # a change that was not made yet
    assert red == {task.name for task in tasks() if task.name.startswith(ends)} - others
