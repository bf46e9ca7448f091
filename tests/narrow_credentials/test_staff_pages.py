"""The staff pages limit credentials: for whom, with what, and from where."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from taxpayers.models import Change, Credential, SystemUser
from tests.support.erp import Erp, claims_of
from tests.support.factories import (
    SUBMIT,
    VIEW,
    GrantedPermissionFactory,
    IntermediaryFactory,
)
from tests.support.staff import errors_of, opened, page_url, task_url, text_of
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


def test_many_taxpayers_are_counted_and_some_are_named(officer: Client, intermediary: Erp) -> None:
    names = [f"C{number:09d}" for number in range(12)]
    SystemUser.objects.update(allowed_taxpayers=" ".join(names))
    page = text_of(officer.get(page_url(intermediary.system_user)))
    assert f"It may act for 12 taxpayers only: {', '.join(names[:10])} …." in page


def test_a_wrong_limit_is_named_and_nothing_is_saved(officer: Client, intermediary: Erp) -> None:
    url = task_url(intermediary.system_user, "limit_system_user")
    wrong: dict[str, dict[str, Any]] = {
        "There is no taxpayer C9999999999.": {"taxpayers": "C9999999999"},
        "is not a valid identifier: the TIN must be": {"taxpayers": "C12345, ?"},
        "Select a valid choice.": {"permissions": ["documents:shred"]},
    }
    for error, form in wrong.items():
        assert error in text_of(send(officer, url, **form))
    assert not SystemUser.objects.get(pk=intermediary.system_user.pk).is_limited


def test_a_limit_that_a_colleague_has_set_is_not_overwritten(
    officer: Client, intermediary: Erp
) -> None:
    url = task_url(intermediary.system_user, "limit_system_user")
    form = opened(officer, url)
    SystemUser.objects.update(allowed_permissions=SUBMIT)
    response = officer.post(url, {**form, **WHY, "permissions": [VIEW]})
    assert f"A colleague changed this. It is now: {SUBMIT}." in text_of(response)
    assert SystemUser.objects.get(pk=intermediary.system_user.pk).allowed_permissions == SUBMIT


def test_who_acts_for_nobody_has_no_limit(officer: Client, erp: Erp) -> None:
    page = text_of(officer.get(task_url(erp.system_user, "limit_system_user"), follow=True))
    assert "is not an intermediary, so its system users cannot act for others." in page


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


def test_a_wrong_network_is_named_with_the_right_one(officer: Client, erp: Erp) -> None:
    secret = erp.system_user.credentials.get()
    url = f"{task_url(erp.system_user, 'change_secret')}?secret={secret.pk}"
    response = send(officer, url, networks="203.0.113.7/24")
    assert errors_of(response) == (
        "203.0.113.7/24 is not the first address of its network. Write 203.0.113.0/24."
    )


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


def test_what_if_knows_the_limits(officer: Client, intermediary: Erp) -> None:
    tin = str(GrantedPermissionFactory.create(intermediary=intermediary.role).taxpayer.identifier)
    SystemUser.objects.update(allowed_permissions=VIEW)
    url = reverse("admin:tokens_loginevent_what_if")
    asked = {"client_id": intermediary.client_id}
    own, acting = (text_of(officer.get(url, {**asked, "on_behalf_of": name})) for name in ("", tin))
    assert "Limited to acting for others" in own
    assert VIEW in acting
    assert SUBMIT not in acting
    assert "Did it come from a network from where the secret may be used? not checked" in acting


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
