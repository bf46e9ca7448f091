"""The staff pages limit from where credentials may be used."""

from typing import Any

import pytest
from django.test import Client

from taxpayers.models import Change, Credential
from tests.support.erp import Erp
from tests.support.staff import opened, page_url, task_url, text_of

pytestmark = pytest.mark.django_db
WHY = {"reason": "one branch"}


def send(client: Client, url: str, **form: Any) -> Any:
    return client.post(url, {**opened(client, url), **WHY, **form})


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
