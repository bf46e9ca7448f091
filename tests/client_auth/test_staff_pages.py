"""Staff see how a system user logs in, change it, and register and remove its keys."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from taxpayers.models import Change, Credential, SystemUser
from taxpayers.services import revoke_credential
from tests.client_auth.key_erp import BY, KeyErp, jwks, new_key_erp, new_pair
from tests.support.command_line import output_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import CredentialFactory
from tests.support.staff import (
    errors_of,
    opened,
    page_url,
    staff_client,
    task_url,
    text_of,
)
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db


@pytest.fixture
def officer(db: None) -> Client:
    return staff_client("security officer", "ravi")


@pytest.fixture
def erp() -> KeyErp:
    return new_key_erp()


def test_the_page_shows_the_method_and_its_keys(officer: Client, erp: KeyErp) -> None:
    response = officer.get(page_url(erp.system_user))
    page = text_of(response)
    assert "Logs in with Private key (private_key_jwt)" in page
    assert f"…{erp.pair.kid[-4:]} Key Valid" in page
    assert f'title="{erp.pair.kid}"' in response.content.decode()
    assert "Register a new key" in page
    assert "Change to a secret" in page
    assert "Issue a new secret" not in page


def test_the_page_of_a_client_with_a_secret_offers_the_change(officer: Client) -> None:
    page = text_of(officer.get(page_url(new_erp().system_user)))
    assert "Logs in with Client secret" in page
    assert "Change to a private key" in page
    assert "Register a new key" not in page


def test_a_change_to_a_key(officer: Client) -> None:
    erp, pair = new_erp(), new_pair()
    form = {"keys": jwks(pair), "expires": "", "reason": "asked by letter"}
    response = officer.post(task_url(erp.system_user, "use_private_key"), form, follow=True)
    assert "logs in with a private key now" in text_of(response)
    assert KeyErp(erp.system_user, pair).login().status_code == 200
    assert erp.login().status_code == 400
    assert Change.objects.filter(by="ravi", reason="asked by letter").count() == 2


def test_a_change_to_a_secret_shows_it_once(officer: Client, erp: KeyErp) -> None:
    url = task_url(erp.system_user, "use_client_secret")
    form = opened(officer, url) | {"expires": "", "reason": "no keys"}
    response = officer.post(url, form)
    assert "no-store" in response["Cache-Control"]
    (secret,) = set(re.findall(r"cs_test_[0-9A-Za-z]{49}", response.content.decode()))
    assert Erp(erp.client_id, secret).login().status_code == 200
    assert erp.login().status_code == 400
    assert secret not in officer.post(url, form, follow=True).content.decode()


def test_a_key_is_registered_and_the_old_one_removed(officer: Client, erp: KeyErp) -> None:
    new = new_pair()
    url = task_url(erp.system_user, "register_client_key")
    response = officer.post(url, {"keys": jwks(new), "expires": "2099-12-31"}, follow=True)
    assert f"The key {new.kid} is registered." in text_of(response)
    full = officer.post(url, {"keys": jwks(new_pair())}, follow=True)
    assert "There are already two keys." in text_of(full)
    old = erp.system_user.credentials.get(hint=erp.pair.kid[-4:])
    removal = {"secret": str(old.pk), "reason": "rotated"}
    officer.post(task_url(erp.system_user, "revoke_secret"), removal)
    assert erp.login().status_code == 400
    assert erp.login(erp.assertion(pair=new)).status_code == 200


def test_a_private_key_is_refused_and_not_shown_again(officer: Client, erp: KeyErp) -> None:
    private = new_pair().private_jwk
    response = officer.post(
        task_url(erp.system_user, "register_client_key"), {"keys": json.dumps(private)}
    )
    assert "PRIVATE" in errors_of(response)
    assert private["d"] not in response.content.decode()
    assert private["d"] not in json.dumps(list(Change.objects.values()), default=str)


@pytest.mark.parametrize("role", ["viewer", "registrar", "auditor"])
@pytest.mark.parametrize("task", ["register_client_key", "use_private_key", "use_client_secret"])
def test_only_security_officers_change_it(role: str, task: str, erp: KeyErp) -> None:
    client = staff_client(role)
    assert client.post(task_url(erp.system_user, task), {}).status_code == 403


def test_without_a_valid_key_the_state_says_so(officer: Client, erp: KeyErp) -> None:
    row = erp.system_user.credentials.get()
    revoke_credential(credential=row, reason="r", by=BY, at=timezone.now())
    assert "No valid key" in text_of(officer.get(page_url(erp.system_user)))


def test_a_secret_that_is_left_is_no_way_in(officer: Client, erp: KeyErp) -> None:
    SystemUser.objects.filter(pk=erp.system_user.pk).update(token_endpoint_auth_method="")
    assert "No valid secret" in text_of(officer.get(page_url(erp.system_user)))


def test_the_last_key_that_ends_soon_is_a_warning(officer: Client, erp: KeyErp) -> None:
    Credential.objects.update(expires_at=timezone.now() + timedelta(days=3))
    page = text_of(officer.get(page_url(erp.system_user)))
    assert "Its last valid key" in page


@pytest.mark.parametrize("ended", ["", "key", "key and secret"])
def test_what_would_happen_asks_for_the_way_in_that_is_used(
    officer: Client, erp: KeyErp, ended: str
) -> None:
    CredentialFactory.create(system_user=erp.system_user, slot=2)  # by SQL: no way in
    if ended:
        key = erp.system_user.credentials.exclude(public_jwk="").get()
        revoke_credential(credential=key, reason="r", by=BY, at=timezone.now())
    if ended == "key":
        erp.system_user.credentials.filter(public_jwk="").delete()
    asked = {"client_id": erp.client_id, "on_behalf_of": "", "moment": ""}
    page = text_of(officer.get(reverse("admin:tokens_loginevent_what_if"), asked))
    assert ("No valid key" in page) is bool(ended)


def test_a_key_that_ends_soon_is_replaced_by_a_key(officer: Client, erp: KeyErp) -> None:
    Credential.objects.update(expires_at=timezone.now() + timedelta(days=3))
    page = officer.get(reverse("admin:ending_soon"))
    assert f" Key {erp.system_user}" in text_of(page)
    assert "Issue a new secret" not in text_of(page)
    ((_row, task),) = page.context["rows"]
    assert str(task.link.title) == "Register a new key"
    assert officer.get(task.link.url).status_code == 200
    selected = {"selected": f"secret:{erp.system_user.credentials.get().pk}"}
    preview = text_of(officer.post(reverse("admin:ending_soon"), selected))
    assert "Register a new one." in preview


def test_before_the_last_key_ends_a_new_key_is_offered(officer: Client, erp: KeyErp) -> None:
    for task in ("revoke_secret", "retire_secret"):
        response = officer.get(task_url(erp.system_user, task))
        page = text_of(response)
        assert "It is the last one that is valid." in page
        assert "Register a new key" in page
        assert f"Key …{erp.pair.kid[-4:]} Valid" in page
        for word in ("secret stops", "last valid secret", "Issue a new secret"):
            assert word not in page
    SystemUser.objects.update(
        blocked_at=timezone.now(), blocked_by="kumar", blocked_reason="stolen laptop"
    )
    unblocking = text_of(officer.get(task_url(erp.system_user, "unblock_system_user")))
    assert "What was valid before the block works again." in unblocking
    assert "Register a new key" in unblocking


def test_a_login_with_a_wrong_key_shows_how_the_client_logs_in(
    officer: Client, erp: KeyErp
) -> None:
    refused = erp.login(erp.assertion(pair=new_pair()))
    page = text_of(officer.get(page_url(LoginEvent.objects.get(pk=refused["correlationId"]))))
    assert "Logs in with Private key (private_key_jwt)" in page
    assert f"Valid keys …{erp.pair.kid[-4:]}" in page
    assert "Valid secrets" not in page


def test_the_page_of_a_login_names_the_key(officer: Client, erp: KeyErp) -> None:
    event = LoginEvent.objects.get(pk=erp.login()["correlationId"])
    assert f"private key {erp.pair.kid} (private_key_jwt)" in text_of(officer.get(page_url(event)))


def test_explain_login_names_the_method_and_the_key(erp: KeyErp) -> None:
    def explained(response: Any) -> str:
        return output_of("explain_login", response["correlationId"])

    assertion = erp.assertion()
    assert f"proved by  private_key_jwt, key {erp.pair.kid}\n" in explained(erp.login(assertion))
    again = explained(erp.login(assertion))
    assert f"proved by  private_key_jwt, key {erp.pair.kid}, used before\n" in again
    assert "proved by  client secret …" in explained(new_erp().login())
