"""The staff pages limit credentials: for whom, with what, and from where."""

from typing import Any

import pytest
from django.test import Client

from taxpayers.models import Change, Credential, SystemUser
from tests.support.erp import Erp, claims_of
from tests.support.factories import (
    SUBMIT,
    VIEW,
    GrantedPermissionFactory,
    IntermediaryFactory,
)
from tests.support.staff import opened, page_url, task_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db
WHY = {"reason": "one branch"}


def send(client: Client, url: str, **form: Any) -> Any:
    return client.post(url, {**opened(client, url), **WHY, **form})


def test_a_limit_is_set_shown_and_removed(officer: Client, intermediary: Erp) -> None:
    user = intermediary.system_user
    one, other = (GrantedPermissionFactory.create(intermediary=intermediary.role) for _ in range(2))
    tin = str(one.taxpayer.identifier)
    url = task_url(user, "limit_system_user")
    assert "no token for its own taxpayer" in text_of(officer.get(url))
    assert send(officer, url, permissions=[VIEW], taxpayers=f" {tin.lower()}\n").status_code == 302
    page = text_of(officer.get(page_url(user)))
    assert (
        f"Limit On behalf of others it gets these permissions at most: {VIEW}."
        f" It may act for 1 taxpayer only: {tin}. It gets no token for its own taxpayer." in page
    )
    assert claims_of(intermediary.login(on_behalf_of=tin))["permissions"] == [VIEW]
    assert intermediary.login(on_behalf_of=str(other.taxpayer.identifier)).status_code == 400
    form = officer.get(url).context["form"]
    assert (form["permissions"].value(), form["taxpayers"].value()) == ([VIEW], tin)
    assert send(officer, url).status_code == 302
    assert "It gets no token for its own" not in text_of(officer.get(page_url(user)))
    assert intermediary.login().status_code == 200
    assert (
        list(Change.objects.values_list("action", "reason", "by"))
        == [("limit_system_user", "one branch", "kumar")] * 2
    )


def test_a_limit_that_a_colleague_has_set_is_not_overwritten(
    officer: Client, intermediary: Erp
) -> None:
    url = task_url(intermediary.system_user, "limit_system_user")
    form = opened(officer, url)
    SystemUser.objects.update(allowed_permissions=SUBMIT)
    response = officer.post(url, {**form, **WHY, "permissions": [VIEW]})
    assert f"A colleague changed this. It is now: {SUBMIT}." in text_of(response)
    assert SystemUser.objects.get(pk=intermediary.system_user.pk).allowed_permissions == SUBMIT


def test_the_networks_of_a_secret_are_set_shown_and_removed(officer: Client, erp: Erp) -> None:
    user, secret = erp.system_user, erp.system_user.credentials.get()
    assert erp.login().status_code == 200
    url = f"{task_url(user, 'change_secret')}?secret={secret.pk}"
    assert url in officer.get(page_url(user)).content.decode()
    page = text_of(officer.get(url))
    assert "From where it was used, in the last 30 days" in page
    assert "127.0.0.1" in page
    answer = send(officer, url, networks="203.0.113.0/24\n2001:db8::/32, 192.0.2.7")
    assert answer.status_code == 302
    shown = "192.0.2.7/32 203.0.113.0/24 2001:db8::/32"
    assert Credential.objects.get().allowed_networks == shown
    assert f"from {shown} only" in text_of(officer.get(page_url(user)))
    assert erp.login().status_code == 400
    for task in (url, task_url(user, "rotate_secret")):
        form = officer.get(task).context["form"]
        assert form["networks"].value() == shown.replace(" ", "\n")
    send(officer, url, networks="")
    assert erp.login().status_code == 200
    assert list(Change.objects.values_list("action", flat=True)) == ["change_secret"] * 2


def test_credentials_are_issued_with_their_limits(officer: Client) -> None:
    role = IntermediaryFactory.create()
    tin = str(GrantedPermissionFactory.create(intermediary=role).taxpayer.identifier)
    response = officer.post(
        task_url(SystemUser, "issue_credentials"),
        {
            "taxpayer": role.taxpayer.tin,
            "name": "Branch",
            "scopes": ["InvoicingAPI"],
            "logins_per_minute": "12",
            "permissions": [VIEW],
            "taxpayers": tin,
            "networks": "203.0.113.0/24",
        },
    )
    assert "Log in from 203.0.113.0/24" in text_of(response)
    user = SystemUser.objects.get()
    assert (user.allowed_permissions, user.allowed_taxpayers) == (VIEW, tin)
    assert user.credentials.get().allowed_networks == "203.0.113.0/24"


def test_the_page_of_a_refused_login_offers_the_task_that_fixes_it(
    officer: Client, intermediary: Erp
) -> None:
    user = intermediary.system_user
    secret = user.credentials.get()
    SystemUser.objects.update(allowed_permissions=VIEW)
    limited = intermediary.login()["correlationId"]
    SystemUser.objects.update(allowed_permissions="")
    Credential.objects.update(allowed_networks="203.0.113.0/24")
    elsewhere = intermediary.login()["correlationId"]
    change = f'href="{task_url(user, "change_secret")}?secret={secret.pk}"'

    def page_of(reference: str) -> str:
        page: str = officer.get(page_url(LoginEvent.objects.get(pk=reference))).content.decode()
        return page

    assert change in page_of(elsewhere)
    Credential.objects.update(allowed_networks="203.0.113.0/24 127.0.0.1/32")
    assert change not in page_of(elsewhere)
    assert "Fixed since then" in page_of(elsewhere)
    assert "Fixed since then" in page_of(limited)
    SystemUser.objects.update(allowed_permissions=VIEW)
    assert f'href="{task_url(user, "limit_system_user")}"' in page_of(limited)
