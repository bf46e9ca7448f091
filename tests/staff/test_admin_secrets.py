"""A new secret is shown on one page, once; the old one is retired or revoked (contract 3)."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from taxpayers.models import Change, ClientSecret, SystemUser
from tests.support.erp import Erp, new_erp
from tests.support.factories import ClientSecretFactory, TaxpayerFactory
from tests.support.staff import errors_of, page_url, staff_client, task_url, text_of

pytestmark = pytest.mark.django_db
SECRET = re.compile(r"cs_test_[0-9A-Za-z]{49}")


@pytest.fixture
def officer(db: None) -> Client:
    return staff_client("security officer", "ravi")


def form_of(client: Client, user: SystemUser) -> dict[str, str]:
    """What a browser would send: the hidden field of the page, and empty days."""
    form = client.get(task_url(user, "rotate_secret")).context["form"]
    return {"newest": str(form["newest"].value()), "expires": "", "retire_old": ""}


def shown_secret(response: Any) -> str:
    assert response.status_code == 200
    (secret,) = set(SECRET.findall(response.content.decode()))
    return str(secret)


def issue(client: Client, **form: object) -> Any:
    form = {"scopes": ["InvoicingAPI"], "logins_per_minute": "12", "name": "Shop till", **form}
    return client.post(task_url(SystemUser, "issue_credentials"), form)


def test_issued_credentials_log_in(officer: Client) -> None:
    taxpayer = TaxpayerFactory.create()
    response = issue(officer, taxpayer=taxpayer.tin, expires="2099-01-01")
    user = SystemUser.objects.get()
    erp = Erp(user.client_id, shown_secret(response), user)
    assert erp.login().status_code == 200
    page = text_of(response)
    for shown in (user.client_id, "http://127.0.0.1:8000/connect/token", "This page is shown once"):
        assert shown in page
    assert Change.objects.latest("pk").action == "issue_credentials"


def test_the_page_with_the_secret_is_not_stored_anywhere(officer: Client) -> None:
    response = issue(officer, taxpayer=TaxpayerFactory.create().tin)
    secret = shown_secret(response)
    assert "no-store" in response["Cache-Control"]
    assert response["Pragma"] == "no-cache"
    assert response["Referrer-Policy"] == "no-referrer"
    assert list(get_messages(response.wsgi_request)) == []
    for session in Session.objects.all():
        assert secret not in str(session.get_decoded())
    assert not [c for c in Change.objects.all() if secret in str((c.before, c.after, c.reason))]
    assert not [c for c in response.cookies.values() if secret in c.value]


def test_the_page_with_the_secret_has_no_inline_script(officer: Client) -> None:
    html = issue(officer, taxpayer=TaxpayerFactory.create().tin).content.decode()
    own = html[html.index('<div class="staff">') :]
    own = own[: own.index("data-copied")]
    assert "<script" not in own
    assert not re.search(r"\son[a-z]+=", own)
    assert "staff/secret_once.js" in html


def test_submitting_the_form_of_new_credentials_again_creates_no_second_user(
    officer: Client,
) -> None:
    taxpayer = TaxpayerFactory.create()
    issue(officer, taxpayer=taxpayer.tin)
    again = issue(officer, taxpayer=taxpayer.tin)
    assert "already has a system user named Shop till" in errors_of(again)
    assert not SECRET.search(again.content.decode())
    assert ClientSecret.objects.count() == 1


def test_a_second_secret_works_beside_the_first(officer: Client) -> None:
    erp = new_erp()
    user = erp.system_user
    response = officer.post(task_url(user, "rotate_secret"), form_of(officer, user))
    second = Erp(user.client_id, shown_secret(response), user)
    assert erp.login().status_code == second.login().status_code == 200


def test_the_old_secret_can_be_retired_when_a_new_one_is_issued(officer: Client) -> None:
    user = new_erp().system_user
    form = form_of(officer, user) | {"retire_old": "2099-01-31"}
    ClientSecret.objects.update(expires_at=datetime(2100, 1, 1, tzinfo=UTC))
    officer.post(task_url(user, "rotate_secret"), form)
    old = user.secrets.earliest("pk")
    assert old.expires_at == datetime(2099, 1, 31, 15, 59, 59, 999999, UTC)


def test_reloading_the_page_with_the_secret_issues_no_second_one(officer: Client) -> None:
    user = new_erp().system_user
    form = form_of(officer, user)
    url = task_url(user, "rotate_secret")
    secret = shown_secret(officer.post(url, form))
    again = officer.post(url, form, follow=True)
    assert not SECRET.search(again.content.decode())
    assert "There are already two secrets" in text_of(again)
    # … also where there is room for another one
    user.secrets.filter(slot=1).update(slot=None, revoked_at=timezone.now())
    again = officer.post(url, form)
    assert "This form was already submitted" in errors_of(again)
    assert secret not in again.content.decode()
    assert user.secrets.count() == 2


def test_going_back_shows_the_form_and_not_the_secret(officer: Client) -> None:
    user = new_erp().system_user
    secret = shown_secret(officer.post(task_url(user, "rotate_secret"), form_of(officer, user)))
    for url in (task_url(user, "rotate_secret"), page_url(user)):
        assert secret not in officer.get(url, follow=True).content.decode()


def test_a_third_secret_is_refused_and_not_offered(officer: Client) -> None:
    user = ClientSecretFactory.create().system_user
    ClientSecretFactory.create(system_user=user, slot=2)
    response = officer.get(task_url(user, "rotate_secret"), follow=True)
    assert "There are already two secrets" in text_of(response)
    assert "rotate_secret" not in [b.url for b in response.context["buttons"]]


def test_a_secret_is_revoked_with_a_reason_at_once(officer: Client) -> None:
    erp = new_erp()
    user = erp.system_user
    secret = user.secrets.get()
    url = task_url(user, "revoke_secret")
    assert f"{url}?secret={secret.pk}" in officer.get(page_url(user)).content.decode()
    assert "required" in errors_of(officer.post(url, {"secret": secret.pk}))
    officer.post(url, {"secret": secret.pk, "reason": "leaked"})
    assert erp.login().status_code == 400
    assert "Revoked" in text_of(officer.get(page_url(user)))
    assert "It has no valid secret." in text_of(officer.get(url, follow=True))


def test_the_secret_of_another_system_user_cannot_be_chosen(officer: Client) -> None:
    user, foreign = ClientSecretFactory.create().system_user, ClientSecretFactory.create()
    response = officer.post(
        task_url(user, "revoke_secret"), {"secret": foreign.pk, "reason": "mistake"}
    )
    assert "not one of the available choices" in errors_of(response)


def test_a_secret_is_retired_at_the_end_of_a_day(officer: Client) -> None:
    secret = ClientSecretFactory.create()
    user = secret.system_user
    day = (timezone.localtime() + timedelta(days=10)).date()
    form = {"secret": secret.pk, "last_day": day.isoformat(), "reason": "moved to the new one"}
    officer.post(task_url(user, "retire_secret"), form)
    secret.refresh_from_db()
    assert timezone.localtime(secret.expires_at).date() == day
    change = Change.objects.latest("pk")
    assert (change.action, change.reason) == ("retire_secret", "moved to the new one")
    late = {**form, "last_day": "2099-01-01"}
    officer.post(task_url(user, "retire_secret"), late)
    secret.refresh_from_db()
    assert timezone.localtime(secret.expires_at).date() == day  # never prolonged
    assert "in the past" in errors_of(
        officer.post(task_url(user, "retire_secret"), {**form, "last_day": "2001-01-01"})
    )


def test_hints_are_shown_and_hashes_are_not(officer: Client) -> None:
    secret = ClientSecretFactory.create()
    page = officer.get(page_url(secret.system_user)).content.decode()
    assert f"…{secret.hint}" in page
    assert secret.hashed not in page
    assert secret.hashed.removeprefix("sha256$") not in page
