"""Protected APIs and the secrets of system users on the staff pages (contract 2 and 3)."""

import re
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from taxpayers.models import Change, Credential, SystemUser
from taxpayers.moments import moment_text
from tests.support import make
from tests.support.erp import Erp, new_erp
from tests.support.staff import errors_of, list_url, opened, page_url, task_url, text_of
from tokens.models import ProtectedApi, ProtectedApiSecret
from tokens.protected_apis.registration import live_secrets

pytestmark = pytest.mark.django_db

NEW = {"name": "Invoicing", "audience": "InvoicingAPI", "reason": "contract 7"}


@pytest.fixture
def api(officer: Client) -> ProtectedApi:
    officer.post(task_url(ProtectedApi, "register_protected_api"), NEW)
    return ProtectedApi.objects.get()


def revoke(officer: Client, api: ProtectedApi, secret: ProtectedApiSecret) -> Any:
    return officer.post(task_url(api, "revoke_secret"), {"secret": secret.pk, "reason": "leaked"})


def test_a_registered_api_gets_its_secret_on_one_page_with_a_question_that_works(
    officer: Client, client: Client
) -> None:
    response = officer.post(task_url(ProtectedApi, "register_protected_api"), NEW)
    api, page = ProtectedApi.objects.get(), text_of(response)
    secret = re.search(r"\bps_test_\w+", page)
    assert secret is not None
    assert f"curl http://127.0.0.1:8000/connect/introspect -u {api.client_id}:{secret[0]}" in page
    answer = client.post(
        "/connect/introspect",
        f"client_id={api.client_id}&client_secret={secret[0]}&token=TOKEN",
        content_type="application/x-www-form-urlencoded",
    )
    assert answer.json() == {"active": False}
    for other in (page_url(api), list_url(ProtectedApi)):
        assert secret[0] not in officer.get(other).content.decode()
    change = Change.objects.get()
    assert (change.action, change.by) == ("register_protected_api", "kumar")
    assert change.reason == "contract 7"
    again = officer.post(task_url(ProtectedApi, "register_protected_api"), NEW)
    assert "There already is a protected API named Invoicing" in errors_of(again)
    assert ProtectedApi.objects.count() == ProtectedApiSecret.objects.count() == 1


def test_a_secret_is_replaced_and_the_former_one_revoked(
    officer: Client, api: ProtectedApi
) -> None:
    at = timezone.now()
    url, revoking = (task_url(api, f"{task}_secret") for task in ("rotate", "revoke"))
    assert "Ends soon" not in text_of(officer.get(page_url(api)))
    ProtectedApiSecret.objects.update(expires_at=at + timedelta(days=20))
    assert "Active Ends soon Its last valid secret" in text_of(officer.get(page_url(api)))
    assert "Ends soon" in text_of(officer.get(list_url(ProtectedApi)))
    sent = opened(officer, url) | {"reason": "yearly"}
    assert "ps_test_" in text_of(officer.post(url, sent))
    assert "Its last valid secret" not in text_of(officer.get(page_url(api)))
    assert "has two live secrets" in text_of(officer.get(url, follow=True))
    old, new = ProtectedApiSecret.objects.order_by("pk")
    for secret, hours in ((old, 25), (new, 23)):
        used = at - timedelta(hours=hours)
        ProtectedApiSecret.objects.filter(pk=secret.pk).update(last_used_at=used)
    asked, warning = text_of(officer.get(revoking)), "This is the last valid secret."
    assert f"The secret {new} is in use." in asked  # within a day
    assert f"The secret {old} is in use." not in asked
    assert warning not in asked
    revoke(officer, api, old)
    assert live_secrets(api, at) == [new]
    assert "This form was already submitted" in errors_of(officer.post(url, sent))
    assert warning in text_of(officer.get(revoking))
    foreign = make.api_secret()
    for other in (foreign, old):
        assert "Select a valid choice" in errors_of(revoke(officer, api, other))
    assert foreign.is_live(at)
    revoke(officer, api, new)
    assert "It has no valid secret. Issue a new one." in text_of(officer.get(page_url(api)))


def test_apis_are_found_by_name_and_client_id(officer: Client, api: ProtectedApi) -> None:
    make.api_secret()
    ProtectedApi.objects.update(is_active=False)
    page = text_of(officer.get(page_url(api)))
    assert "Not active Everything that it asks is refused." in page
    everything = officer.get(reverse("admin:search"), {"q": "invoic"})
    assert page_url(api) in everything.content.decode()
    for term, found in (("invoic", True), (api.client_id, True), ("archive", False)):
        page = text_of(officer.get(f"{list_url(ProtectedApi)}?q={term}"))
        assert (api.client_id in page.replace(term, "", 1)) is found, term


SECRET = re.compile(r"cs_test_[0-9A-Za-z]{49}")


def shown_secret(response: Any) -> str:
    assert response.status_code == 200
    (secret,) = set(SECRET.findall(response.content.decode()))
    return str(secret)


def issue(client: Client, **form: object) -> Any:
    given = {"scopes": ["InvoicingAPI"], "logins_per_minute": "12", "name": "Shop till"}
    form = given | {"reason": "A new ERP system"} | form
    return client.post(task_url(SystemUser, "issue_credentials"), form)


def test_issued_credentials_log_in_and_are_handed_over_on_one_sheet(officer: Client) -> None:
    taxpayer = make.intermediary(taxpayer__rob="ROB-12345").taxpayer
    response = issue(officer, taxpayer=str(taxpayer.identifier), expires="2099-01-01")
    user, secret = SystemUser.objects.get(), shown_secret(response)
    erp = Erp(user.client_id, secret, user)
    assert erp.login().status_code == 200
    page = text_of(response)
    expires = user.credentials.get().expires_at
    for shown in (
        "This page is shown once",
        f"Taxpayer {taxpayer.name} TIN {taxpayer.tin} ROB number ROB-12345 System user Shop till",
        "Login address http://127.0.0.1:8000/connect/token",
        f"Client ID {user.client_id}",
        f"Secret valid until {moment_text(expires)}",
        "-H 'onbehalfof: TIN'",  # its taxpayer may act for others
    ):
        assert shown in page
    example, as_text = response.context["example"], response.context["as_text"]
    program, url, *rest = shlex.split(example)
    assert (program, url) == ("curl", "http://127.0.0.1:8000/connect/token")
    assert set(rest[::2]) == {"-d"}
    assert dict(value.split("=", 1) for value in rest[1::2]) == erp.form
    for part in (secret, user.client_id, "ROB number: ROB-12345", example, "Environment: test"):
        assert part in as_text
    change = Change.objects.latest("pk")
    assert (change.action, change.reason) == ("issue_credentials", "A new ERP system")
    again = issue(officer, taxpayer=str(taxpayer.identifier))
    assert "already has a system user named Shop till" in errors_of(again)
    assert not SECRET.search(again.content.decode())
    assert Credential.objects.count() == 1
    assert "onbehalfof" not in text_of(issue(officer, taxpayer=make.taxpayer().tin))


def test_the_page_with_the_secret_is_not_stored_anywhere(officer: Client) -> None:
    response = issue(officer, taxpayer=make.taxpayer().tin)
    secret = shown_secret(response)
    assert "no-store" in response["Cache-Control"]
    assert list(get_messages(response.wsgi_request)) == []
    for session in Session.objects.all():
        assert secret not in str(session.get_decoded())
    assert not [c for c in Change.objects.all() if secret in str((c.before, c.after, c.reason))]
    assert not [c for c in response.cookies.values() if secret in c.value]
    own = response.content.decode().partition('<div class="staff">')[2].partition("data-copied")[0]
    assert not re.search(r"<script|\son[a-z]+=", own)
    stored, user = Credential.objects.get(), SystemUser.objects.get()
    page = officer.get(page_url(user)).content.decode()
    assert f"…{stored.hint}" in page
    assert secret not in page
    assert stored.lookup.removeprefix("sha256$") not in page


def test_reloading_the_page_with_the_secret_issues_no_second_one(officer: Client) -> None:
    user = new_erp().system_user
    old = user.credentials.get()
    Credential.objects.update(expires_at=datetime(2100, 1, 1, tzinfo=UTC))
    url = task_url(user, "rotate_secret")
    form = opened(officer, url) | {"reason": "it ends soon", "retire_old": "2099-01-31"}
    response = officer.post(url, form)
    secret = shown_secret(response)
    assert f"Former secret {old} valid until" in text_of(response)
    old.refresh_from_db()
    assert old.expires_at == datetime(2099, 1, 31, 15, 59, 59, 999999, UTC)
    again = officer.post(url, form, follow=True)
    assert not SECRET.search(again.content.decode())
    assert "has two live secrets" in text_of(again)
    # … also where there is room for another one
    user.credentials.filter(slot=1).update(slot=None, revoked_at=timezone.now())
    again = officer.post(url, form)
    assert "This form was already submitted" in errors_of(again)
    assert secret not in again.content.decode()
    assert user.credentials.count() == 2


def test_a_task_for_a_secret_that_is_not_named_leads_to_the_list_of_them(officer: Client) -> None:
    erp = new_erp()
    user, old = erp.system_user, erp.system_user.credentials.get()
    new = make.credential(system_user=user, slot=2)
    url = task_url(user, "revoke_secret")
    for asked in (url, f"{url}?secret=0", f"{url}?secret=nonsense"):
        response = officer.get(asked, follow=True)
        assert response.redirect_chain == [(f"{page_url(user)}#secrets", 302)]
        assert "choose one that is valid" in text_of(response)
        for secret in (old, new):
            assert f'href="{url}?secret={secret.pk}"' in response.content.decode()
    page = text_of(officer.get(f"{url}?secret={old.pk}"))
    assert f"Revoke {old}" in page
    assert f"What remains valid {new} until" in page
    assert "never used" in page
    assert f"Revoke {new}" not in page
    foreign = {"secret": make.credential().pk}
    for sent in ({}, foreign):
        refused = officer.post(url, sent | {"reason": "leaked"}, follow=True)
        assert "Nothing was changed: choose one that is valid" in text_of(refused)
    assert not Credential.objects.filter(revoked_at__isnull=False).exists()


@pytest.mark.parametrize("task", ["revoke_secret", "retire_secret"])
def test_a_warning_comes_before_the_last_valid_secret_ends(officer: Client, task: str) -> None:
    user = new_erp().system_user
    url = task_url(user, task)
    assert "It is the last one that is valid." in text_of(officer.get(url))
    make.credential(system_user=user, slot=2)
    other = officer.get(f"{url}?secret={user.credentials.earliest('pk').pk}")
    assert "It is the last one that is valid." not in text_of(other)


def test_the_last_characters_of_a_secret_in_use_must_be_entered(officer: Client) -> None:
    erp = new_erp()
    user, old = erp.system_user, erp.system_user.credentials.get()
    new = make.credential(system_user=user, slot=2)
    url = task_url(user, "revoke_secret")
    assert erp.login().status_code == 200
    asked = officer.get(f"{url}?secret={old.pk}")
    assert "It is in use." in text_of(asked)
    assert "hint" in asked.context["form"].fields
    sent = {"secret": old.pk, "reason": "leaked"}
    assert "required" in errors_of(officer.post(url, sent))
    wrong = officer.post(url, sent | {"hint": new.hint})
    assert "not its last characters" in errors_of(wrong)
    assert f"Revoke {old}" in text_of(wrong)
    assert erp.login().status_code == 200
    # not needed for one that is not in use
    assert "hint" not in officer.get(f"{url}?secret={new.pk}").context["form"].fields
    officer.post(url, sent | {"hint": f" …{old.hint} "})
    assert erp.login().status_code == 400
