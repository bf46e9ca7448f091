"""The staff pages limit credentials: for whom, with what, and from where."""

from typing import Any

import pytest
from django.test import Client

from taxpayers.models import Change, Credential
from tests.support.erp import Erp, claims_of
from tests.support.factories import VIEW, GrantedPermissionFactory
from tests.support.staff import opened, page_url, task_url, text_of

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
