"""A system user that gets tokens only on behalf of others: on each door, and at the login."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from taxpayers.models import Change, SystemUser
from tests.management_api.portal import SCOPES, Portal, new_portal
from tests.support.command_line import json_output_of, output_of
from tests.support.erp import Erp, description_of, reason_of
from tests.support.staff import page_url, task_url, text_of

pytestmark = pytest.mark.django_db
WHY = {"reason": "one branch"}
ISSUE = "issue_credentials"


def filled_in(client: Client, url: str) -> dict[str, Any]:
    """The form as a browser would send it, unchanged."""
    fields = {field.html_name: field.value() for field in client.get(url).context["form"]}
    return {name: value for name, value in fields.items() if value} | WHY


@pytest.fixture
def portal(settings: Settings) -> Portal:
    settings.SCOPES = SCOPES
    return new_portal()


def by_command(tin: str) -> None:
    json_output_of(ISSUE, tin, "--name", "New", "--only-on-behalf")


@pytest.fixture
def by_page(officer: Client) -> Callable[[str], None]:
    """As the form proposes it: the box is ticked."""

    def issue(tin: str) -> None:
        url = f"{task_url(SystemUser, ISSUE)}?taxpayer={tin}"
        officer.post(url, filled_in(officer, url) | {"name": "New"})

    return issue


@pytest.fixture
def by_rest(portal: Portal) -> Callable[[str], None]:
    def issue(tin: str) -> None:
        body = {"taxpayer": tin, "name": "New", "only_on_behalf": True, **WHY}
        assert portal.post("/system-users", body).status_code == 201

    return issue


@pytest.mark.parametrize("door", ["by_command", "by_page", "by_rest"])
def test_each_door_issues_it_and_only_for_an_intermediary(
    intermediary: Erp, door: str, request: pytest.FixtureRequest
) -> None:
    issue = by_command if door == "by_command" else request.getfixturevalue(door)
    issue(intermediary.tin)
    row = SystemUser.objects.get(name="New")
    assert row.only_on_behalf
    assert Change.objects.get(object_id=row.pk, action=ISSUE).after["only_on_behalf"] is True


def test_each_door_changes_it(intermediary: Erp, officer: Client, portal: Portal) -> None:
    user = intermediary.system_user
    client_id, page = user.client_id, task_url(user, "limit_system_user")
    limits = {"allowed_permissions": [], "allowed_taxpayers": [], **WHY}

    def by_rest(**values: bool) -> None:
        path = f"/system-users/{client_id}"
        answer = portal.post(f"{path}/limits", limits | values, If_Match=portal.etag(path))
        assert answer.status_code == 200

    steps: tuple[tuple[Callable[[], Any], bool], ...] = (
        (lambda: output_of("change_system_user", client_id, "--only-on-behalf"), True),
        (lambda: output_of("change_system_user", client_id, "--name", "Renamed"), True),
        (lambda: output_of("change_system_user", client_id, "--not-limited"), False),
        (lambda: by_rest(only_on_behalf=True), True),
        (by_rest, True),
        (lambda: by_rest(only_on_behalf=False), False),
        (lambda: officer.post(page, filled_in(officer, page) | {"only_on_behalf": "on"}), True),
        (lambda: officer.post(page, filled_in(officer, page)), True),
    )
    for step, expected in steps:
        step()
        user.refresh_from_db()
        assert user.only_on_behalf is expected
    assert "It gets no token for its own taxpayer." in text_of(officer.get(page_url(user)))
    form = filled_in(officer, page)
    del form["only_on_behalf"]
    officer.post(page, form)
    user.refresh_from_db()
    assert not user.only_on_behalf


def test_a_login_on_behalf_of_its_own_taxpayer_is_told_to_leave_the_header_out(
    erp: Erp, intermediary: Erp
) -> None:
    """But a client that may not do so."""
    says = "onbehalfof names the taxpayer of this system user itself."
    for client, reason in ((erp, "not_an_intermediary"), (intermediary, "no_permission")):
        answer = client.login(on_behalf_of=client.tin)
        assert (reason_of(answer), description_of(answer).startswith(says)) == (reason, True)
    SystemUser.objects.update(only_on_behalf=True)
    answer = intermediary.login(on_behalf_of=intermediary.tin)
    assert (reason_of(answer), says in description_of(answer)) == ("no_permission", False)
