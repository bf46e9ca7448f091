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


def revoke(officer: Client, api: ProtectedApi, secret: ProtectedApiSecret) -> Any:
    return officer.post(task_url(api, "revoke_secret"), {"secret": secret.pk, "reason": "leaked"})


def test_a_registered_api_gets_its_secret_on_one_page_with_a_question_that_works(
    officer: Client, client: Client
) -> None:
    response = officer.post(task_url(ProtectedApi, "register_protected_api"), NEW)
    api, page = ProtectedApi.objects.get(), text_of(response)
    secret = re.search(r"\bps_test_\w+", page)
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


def test_a_secret_is_replaced_and_the_former_one_revoked(
    officer: Client, api: ProtectedApi
) -> None:
    at, url, revoking = (
        timezone.now(),
        task_url(api, "rotate_secret"),
        task_url(api, "revoke_secret"),
    )
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
    foreign = ProtectedApiSecretFactory.create()
    for other in (foreign, old):
        assert "Select a valid choice" in errors_of(revoke(officer, api, other))
    assert foreign.is_live(at)
    revoke(officer, api, new)
    assert "It has no valid secret. Issue a new one." in text_of(officer.get(page_url(api)))


def test_apis_are_found_by_name_and_client_id(officer: Client, api: ProtectedApi) -> None:
    ProtectedApiSecretFactory.create()
    ProtectedApi.objects.update(is_active=False)
    page = text_of(officer.get(page_url(api)))
    assert "Not active Everything that it asks is refused." in page
    everything = officer.get(reverse("admin:search"), {"q": "invoic"})
    assert page_url(api) in everything.content.decode()
    for term, found in (("invoic", True), (api.client_id, True), ("archive", False)):
        page = text_of(officer.get(f"{list_url(ProtectedApi)}?q={term}"))
        assert (api.client_id in page.replace(term, "", 1)) is found, term
