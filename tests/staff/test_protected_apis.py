"""Protected APIs on the staff pages: registered, given secrets, stopped (contract 2)."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from taxpayers.models import Change
from tests.support.staff import (
    AUDITOR,
    REGISTRAR,
    SECURITY_OFFICER,
    VIEWER,
    errors_of,
    list_url,
    opened,
    page_url,
    staff_client,
    task_url,
    text_of,
)
from tokens.models import ProtectedApi, ProtectedApiSecret
from tokens.protected_apis.registration import live_secrets

pytestmark = pytest.mark.django_db

NEW = {"name": "Invoicing", "audience": "InvoicingAPI", "reason": "contract 7"}


@pytest.fixture
def officer(db: None) -> Client:
    return staff_client(SECURITY_OFFICER)


@pytest.fixture
def api(officer: Client) -> ProtectedApi:
    officer.post(task_url(ProtectedApi, "register_protected_api"), NEW)
    return ProtectedApi.objects.get()


def rotate(officer: Client, api: ProtectedApi) -> Any:
    url = task_url(api, "rotate_secret")
    return officer.post(url, opened(officer, url) | {"reason": "yearly"})


def revoke(officer: Client, api: ProtectedApi, secret: ProtectedApiSecret) -> Any:
    return officer.post(task_url(api, "revoke_secret"), {"secret": secret.pk, "reason": "leaked"})


def test_a_registered_api_gets_its_secret_on_one_page_with_a_question_that_works(
    officer: Client, client: Client
) -> None:
    response = officer.post(task_url(ProtectedApi, "register_protected_api"), NEW)
    api, page = ProtectedApi.objects.get(), text_of(response)
    secret = re.search(r"\bcs_test_\w+", page)
    assert secret is not None
    assert "no-store" in response["Cache-Control"]
    assert f"curl http://127.0.0.1:8000/connect/introspect -u {api.client_id}:{secret[0]}" in page
    answer = client.post(
        "/connect/introspect",
        f"client_id={api.client_id}&client_secret={secret[0]}&token=TOKEN",
        content_type="application/x-www-form-urlencoded",
    )
    assert answer.json() == {"active": False}
    for other in (page_url(api), list_url(ProtectedApi)):
        assert secret[0] not in officer.get(other).content.decode()
    change = Change.objects.latest("pk")
    assert (change.action, change.by, change.reason) == (
        *("register_protected_api", "aminah"),
        "contract 7",
    )


def test_a_name_that_is_taken_is_refused_so_a_form_sent_twice_registers_one(
    officer: Client, api: ProtectedApi
) -> None:
    response = officer.post(task_url(ProtectedApi, "register_protected_api"), NEW)
    assert "There already is a protected API named Invoicing" in errors_of(response)
    assert ProtectedApi.objects.count() == ProtectedApiSecret.objects.count() == 1


def test_a_second_secret_is_issued_beside_the_first_one_and_no_third(
    officer: Client, api: ProtectedApi
) -> None:
    page = rotate(officer, api)
    assert "cs_test_" in text_of(page)
    assert len(live_secrets(api, timezone.now())) == 2
    page = officer.get(task_url(api, "rotate_secret"), follow=True)
    assert "There are already two secrets." in text_of(page)


def test_a_form_for_a_new_secret_that_is_sent_twice_issues_one(
    officer: Client, api: ProtectedApi
) -> None:
    url = task_url(api, "rotate_secret")
    data = opened(officer, url) | {"reason": "yearly"}
    officer.post(url, data)
    revoke(officer, api, ProtectedApiSecret.objects.earliest("pk"))
    response = officer.post(url, data)
    assert "This form was already submitted" in errors_of(response)
    assert ProtectedApiSecret.objects.count() == 2


def test_the_end_of_its_last_valid_secret_is_announced(officer: Client, api: ProtectedApi) -> None:
    assert "Ends soon" not in text_of(officer.get(page_url(api)))
    soon = timezone.now() + timedelta(days=20)
    ProtectedApiSecret.objects.update(expires_at=soon)
    page = text_of(officer.get(page_url(api)))
    assert "Active Ends soon Its last valid secret" in page
    assert "Issue a new one before." in page
    assert "Ends soon" in text_of(officer.get(list_url(ProtectedApi)))
    rotate(officer, api)
    assert "Its last valid secret" not in text_of(officer.get(page_url(api)))


def test_one_of_its_secrets_is_revoked_and_the_last_one_with_a_warning(
    officer: Client, api: ProtectedApi
) -> None:
    rotate(officer, api)
    first, second = ProtectedApiSecret.objects.order_by("pk")
    warning = "This is the last valid secret."
    assert warning not in text_of(officer.get(task_url(api, "revoke_secret")))
    revoke(officer, api, first)
    assert live_secrets(api, timezone.now()) == [second]
    assert warning in text_of(officer.get(task_url(api, "revoke_secret")))
    assert "Select a valid choice" in errors_of(revoke(officer, api, first))
    revoke(officer, api, second)
    assert "It has no valid secret. Issue a new one." in text_of(officer.get(page_url(api)))


def test_who_revokes_a_secret_sees_when_each_was_last_used(
    officer: Client, api: ProtectedApi
) -> None:
    rotate(officer, api)
    old, new = ProtectedApiSecret.objects.order_by("pk")
    at = timezone.localtime().replace(year=2026, month=3, day=5, hour=14, minute=7)
    ProtectedApiSecret.objects.filter(pk=old.pk).update(last_used_at=at)
    page = text_of(officer.get(page_url(api)))
    assert "Last used" in page
    assert "5 Mar 2026, 14:07" in page
    assert page.count("No use recorded") == 1
    choices = text_of(officer.get(task_url(api, "revoke_secret")))
    assert re.search(rf"{old}, issued [^…]+, last used 2026-03-05 14:07", choices)
    assert re.search(rf"{new}, issued [^…]+, no use recorded", choices)


def test_who_revokes_a_secret_is_warned_of_those_in_use(officer: Client, api: ProtectedApi) -> None:
    rotate(officer, api)
    old, new = ProtectedApiSecret.objects.order_by("pk")
    at = timezone.now()
    ProtectedApiSecret.objects.filter(pk=old.pk).update(last_used_at=at - timedelta(hours=25))
    ProtectedApiSecret.objects.filter(pk=new.pk).update(last_used_at=at - timedelta(hours=23))
    page = text_of(officer.get(task_url(api, "revoke_secret")))
    assert f"The secret {new} is in use." in page
    assert f"The secret {old} is in use." not in page


def test_the_secret_of_another_api_cannot_be_revoked_here(
    officer: Client, api: ProtectedApi
) -> None:
    officer.post(task_url(ProtectedApi, "register_protected_api"), NEW | {"name": "Archive"})
    other = ProtectedApiSecret.objects.latest("pk")
    assert "Select a valid choice" in errors_of(revoke(officer, api, other))
    assert other.is_live(timezone.now())


def test_an_api_is_deactivated_and_activated_with_a_reason(
    officer: Client, api: ProtectedApi
) -> None:
    officer.post(task_url(api, "deactivate_protected_api"), {"reason": "contract ended"})
    page = text_of(officer.get(page_url(api)))
    assert "Not active Everything that it asks is refused." in page
    assert "contract ended" in page
    officer.post(task_url(api, "activate_protected_api"), {"reason": "renewed"})
    api.refresh_from_db()
    assert api.is_active


def test_apis_are_found_by_name_and_client_id(officer: Client, api: ProtectedApi) -> None:
    everything = officer.get(reverse("admin:search"), {"q": "invoic"})
    assert page_url(api) in everything.content.decode()
    for term, found in (("invoic", True), (api.client_id, True), ("archive", False)):
        page = text_of(officer.get(f"{list_url(ProtectedApi)}?q={term}"))
        assert (api.client_id in page.replace(term, "", 1)) is found, term


@pytest.mark.parametrize("role", [VIEWER, REGISTRAR])
def test_apis_are_not_shown_to_those_who_do_not_manage_credentials(
    role: str, api: ProtectedApi
) -> None:
    client = staff_client(role, "siti")
    for url in (list_url(ProtectedApi), page_url(api), task_url(api, "rotate_secret")):
        assert client.get(url).status_code == 403


def test_an_auditor_sees_an_api_and_changes_nothing(api: ProtectedApi) -> None:
    client = staff_client(AUDITOR, "siti")
    assert client.get(page_url(api)).context["buttons"] == []
    for task in ("rotate_secret", "revoke_secret", "deactivate_protected_api"):
        assert client.post(task_url(api, task), {"reason": "x"}).status_code == 403


def test_the_list_needs_as_many_queries_for_many_apis_as_for_one(
    officer: Client, api: ProtectedApi, django_assert_max_num_queries: Any
) -> None:
    for number in range(10):
        officer.post(
            task_url(ProtectedApi, "register_protected_api"), NEW | {"name": f"API {number}"}
        )
    with django_assert_max_num_queries(12):
        officer.get(list_url(ProtectedApi))
