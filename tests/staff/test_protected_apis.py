"""Protected APIs on the staff pages: registered, given secrets, stopped (contract 2)."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from taxpayers.models import Change
from tests.support.factories import ProtectedApiSecretFactory
from tests.support.staff import errors_of, list_url, opened, page_url, task_url, text_of
from tokens.models import ProtectedApi, ProtectedApiSecret
from tokens.protected_apis.registration import live_secrets

pytestmark = pytest.mark.django_db

NEW = {"name": "Invoicing", "audience": "InvoicingAPI", "reason": "contract 7"}


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
    change = Change.objects.get()
    assert (change.action, change.by) == ("register_protected_api", "kumar")
    assert change.reason == "contract 7"
    again = officer.post(task_url(ProtectedApi, "register_protected_api"), NEW)
    assert "There already is a protected API named Invoicing" in errors_of(again)
    assert ProtectedApi.objects.count() == ProtectedApiSecret.objects.count() == 1


def test_a_second_secret_is_issued_beside_the_first_one_and_no_third(
    officer: Client, api: ProtectedApi
) -> None:
    url = task_url(api, "rotate_secret")
    sent = opened(officer, url) | {"reason": "yearly"}
    assert "cs_test_" in text_of(officer.post(url, sent))
    assert len(live_secrets(api, timezone.now())) == 2
    assert "has two live secrets" in text_of(officer.get(url, follow=True))
    revoke(officer, api, ProtectedApiSecret.objects.earliest("pk"))
    assert "This form was already submitted" in errors_of(officer.post(url, sent))
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
    officer.post(task_url(ProtectedApi, "register_protected_api"), NEW | {"name": "Archive"})
    foreign = ProtectedApiSecret.objects.latest("pk")
    assert "Select a valid choice" in errors_of(revoke(officer, api, foreign))
    assert foreign.is_live(timezone.now())
    warning = "This is the last valid secret."
    assert warning not in text_of(officer.get(task_url(api, "revoke_secret")))
    revoke(officer, api, first)
    assert live_secrets(api, timezone.now()) == [second]
    assert warning in text_of(officer.get(task_url(api, "revoke_secret")))
    assert "Select a valid choice" in errors_of(revoke(officer, api, first))
    revoke(officer, api, second)
    assert "It has no valid secret. Issue a new one." in text_of(officer.get(page_url(api)))


def test_who_revokes_a_secret_sees_whether_it_is_in_use(officer: Client, api: ProtectedApi) -> None:
    rotate(officer, api)
    old, new = ProtectedApiSecret.objects.order_by("pk")
    for secret, hours in ((old, 25), (new, 23)):
        used = timezone.now() - timedelta(hours=hours)
        ProtectedApiSecret.objects.filter(pk=secret.pk).update(last_used_at=used)
    page = text_of(officer.get(task_url(api, "revoke_secret")))
    assert f"The secret {new} is in use." in page  # within a day
    assert f"The secret {old} is in use." not in page


def test_apis_are_found_by_name_and_client_id_with_few_queries(
    officer: Client, api: ProtectedApi, django_assert_max_num_queries: Any
) -> None:
    for number in range(10):
        ProtectedApiSecretFactory.create(protected_api__name=f"API {number}")
    with django_assert_max_num_queries(12):
        assert "Active" in text_of(officer.get(list_url(ProtectedApi)))
    ProtectedApi.objects.update(is_active=False)
    page = text_of(officer.get(page_url(api)))
    assert "Not active Everything that it asks is refused." in page
    everything = officer.get(reverse("admin:search"), {"q": "invoic"})
    assert page_url(api) in everything.content.decode()
    for term, found in (("invoic", True), (api.client_id, True), ("archive", False)):
        page = text_of(officer.get(f"{list_url(ProtectedApi)}?q={term}"))
        assert (api.client_id in page.replace(term, "", 1)) is found, term
