"""A new secret is shown on one page, once; the old one is retired or revoked (contract 3)."""

import re
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from taxpayers.models import Change, Credential, SystemUser
from taxpayers.moments import format_moment
from tests.support.erp import Erp, new_erp
from tests.support.factories import CredentialFactory, IntermediaryFactory, TaxpayerFactory
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
    page, end = text_of(response), user.credentials.get().expires_at
    for shown in (
        "This page is shown once",
        f"Taxpayer {taxpayer.name} TIN {taxpayer.tin} System user Shop till Environment test",
        "Login address http://127.0.0.1:8000/connect/token",
        f"Client ID {user.client_id}",
        f"Secret valid until {format_moment(end)} (Asia/Kuala_Lumpur)",
    ):
        assert shown in page
    assert "onbehalfof" not in page
    assert Change.objects.latest("pk").action == "issue_credentials"


def test_the_sheet_has_a_login_that_works_and_everything_as_one_text(officer: Client) -> None:
    role = IntermediaryFactory.create(taxpayer__rob="ROB-12345")
    response = issue(officer, taxpayer=str(role.taxpayer.identifier))
    user, secret = SystemUser.objects.get(), shown_secret(response)
    example, as_text = response.context["example"], response.context["as_text"]
    program, url, *rest = shlex.split(example)
    assert (program, url) == ("curl", "http://127.0.0.1:8000/connect/token")
    assert set(rest[::2]) == {"-d"}
    form = dict(value.split("=", 1) for value in rest[1::2])
    assert form == Erp(user.client_id, secret).form
    for part in (secret, user.client_id, "ROB number: ROB-12345", example, "Environment: test"):
        assert part in as_text
    assert "-H 'onbehalfof: TIN'" in text_of(response)  # its taxpayer may act for others


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
    assert Credential.objects.count() == 1


def test_a_second_secret_works_beside_the_first(officer: Client) -> None:
    erp = new_erp()
    user = erp.system_user
    response = officer.post(task_url(user, "rotate_secret"), form_of(officer, user))
    second = Erp(user.client_id, shown_secret(response), user)
    assert f"Former secret …{erp.client_secret[-4:]} valid until" in text_of(response)
    assert erp.login().status_code == second.login().status_code == 200


def test_the_old_secret_can_be_retired_when_a_new_one_is_issued(officer: Client) -> None:
    user = new_erp().system_user
    form = form_of(officer, user) | {"retire_old": "2099-01-31"}
    Credential.objects.update(expires_at=datetime(2100, 1, 1, tzinfo=UTC))
    officer.post(task_url(user, "rotate_secret"), form)
    old = user.credentials.earliest("pk")
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
    user.credentials.filter(slot=1).update(slot=None, revoked_at=timezone.now())
    again = officer.post(url, form)
    assert "This form was already submitted" in errors_of(again)
    assert secret not in again.content.decode()
    assert user.credentials.count() == 2


def test_going_back_shows_the_form_and_not_the_secret(officer: Client) -> None:
    user = new_erp().system_user
    secret = shown_secret(officer.post(task_url(user, "rotate_secret"), form_of(officer, user)))
    for url in (task_url(user, "rotate_secret"), page_url(user)):
        assert secret not in officer.get(url, follow=True).content.decode()


def test_a_third_secret_is_refused_and_not_offered(officer: Client) -> None:
    user = CredentialFactory.create().system_user
    CredentialFactory.create(system_user=user, slot=2)
    response = officer.get(task_url(user, "rotate_secret"), follow=True)
    assert "There are already two secrets" in text_of(response)
    assert "rotate_secret" not in [b.url for b in response.context["buttons"]]


def test_a_new_secret_has_one_name_everywhere(officer: Client) -> None:
    user = new_erp().system_user
    assert "Issue a new secret" in text_of(officer.get(page_url(user)))
    assert "Issue a new secret" in text_of(officer.get(task_url(user, "rotate_secret")))
    officer.post(task_url(user, "rotate_secret"), form_of(officer, user))
    page = text_of(officer.get(page_url(user)))
    assert "Issued a new secret" in page
    assert "another secret" not in page.lower()


def test_revoking_begins_from_one_secret_and_shows_what_remains(officer: Client) -> None:
    erp = new_erp()
    user, old = erp.system_user, erp.system_user.credentials.get()
    new = CredentialFactory.create(system_user=user, slot=2)
    page = text_of(officer.get(f"{task_url(user, 'revoke_secret')}?secret={old.pk}"))
    assert f"Revoke {old}" in page
    assert f"What remains valid {new} until" in page
    assert "never used" in page
    assert "It is the last one that is valid." not in page
    assert f"Revoke {new}" not in page


def test_a_task_for_a_secret_that_is_not_named_asks_which_one(officer: Client) -> None:
    erp = new_erp()
    user, old = erp.system_user, erp.system_user.credentials.get()
    new = CredentialFactory.create(system_user=user, slot=2)
    url = task_url(user, "revoke_secret")
    for asked in (url, f"{url}?secret=0", f"{url}?secret=nonsense"):
        response = officer.get(asked)
        assert "Choose one that is valid" in text_of(response)
        assert b'name="reason"' not in response.content
        for secret in (old, new):
            assert f'href="{url}?secret={secret.pk}"' in response.content.decode()
    refused = officer.post(url, {"reason": "leaked"})
    assert "Nothing was changed: what was chosen is not valid" in text_of(refused)
    assert not Credential.objects.filter(revoked_at__isnull=False).exists()


@pytest.mark.parametrize("task", ["revoke_secret", "retire_secret"])
def test_a_warning_comes_before_the_last_valid_secret_ends(officer: Client, task: str) -> None:
    user = new_erp().system_user
    url = task_url(user, task)
    response = officer.get(url)
    assert "It is the last one that is valid." in text_of(response)
    assert f'href="{task_url(user, "rotate_secret")}"' in response.content.decode()
    CredentialFactory.create(system_user=user, slot=2)
    other = officer.get(f"{url}?secret={user.credentials.earliest('pk').pk}")
    assert "It is the last one that is valid." not in text_of(other)


def test_the_last_characters_of_a_secret_in_use_must_be_entered(officer: Client) -> None:
    erp = new_erp()
    user, old = erp.system_user, erp.system_user.credentials.get()
    new = CredentialFactory.create(system_user=user, slot=2)
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
    # of one that nobody uses, they are not asked for
    assert "hint" not in officer.get(f"{url}?secret={new.pk}").context["form"].fields
    officer.post(url, sent | {"hint": f" …{old.hint} "})
    assert erp.login().status_code == 400


def test_a_secret_is_revoked_with_a_reason_at_once(officer: Client) -> None:
    erp = new_erp()
    user = erp.system_user
    secret = user.credentials.get()
    url = task_url(user, "revoke_secret")
    assert f"{url}?secret={secret.pk}" in officer.get(page_url(user)).content.decode()
    assert "required" in errors_of(officer.post(url, {"secret": secret.pk}))
    officer.post(url, {"secret": secret.pk, "reason": "leaked"})
    assert erp.login().status_code == 400
    assert "Revoked" in text_of(officer.get(page_url(user)))
    assert "It has no valid secret." in text_of(officer.get(url, follow=True))


def test_the_secret_of_another_system_user_cannot_be_chosen(officer: Client) -> None:
    user, foreign = CredentialFactory.create().system_user, CredentialFactory.create()
    response = officer.post(
        task_url(user, "revoke_secret"), {"secret": foreign.pk, "reason": "mistake"}
    )
    assert "not one of the available choices" in errors_of(response)


def test_a_secret_is_retired_at_the_end_of_a_day(officer: Client) -> None:
    secret = CredentialFactory.create()
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
    secret = CredentialFactory.create()
    page = officer.get(page_url(secret.system_user)).content.decode()
    assert f"…{secret.hint}" in page
    assert secret.lookup not in page
    assert secret.lookup.removeprefix("sha256$") not in page
