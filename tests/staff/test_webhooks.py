"""Webhooks and their deliveries, as a security officer and an auditor read them."""

import pytest
from django.utils import timezone

from identity.webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from tests.support.staff import list_url, page_url, staff_client, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def endpoint() -> WebhookEndpoint:
    """It got one event, and gave up on another."""
    at = timezone.now()
    row = WebhookEndpoint.objects.create(
        url="https://erp.example.org/hooks/my-secret-path",
        client_id="ci_test_portal",
        created_at=at,
    )
    for state, result in ((WebhookDelivery.DELIVERED, "204"), (WebhookDelivery.FAILED, "timeout")):
        event = WebhookEvent.objects.create(type="system_user.blocked", body="{}", created_at=at)
        WebhookDelivery.objects.create(
            event=event, endpoint=row, state=state, last_result=result, created_at=at, due_at=at
        )
    return row


@pytest.mark.parametrize("role", ["security officer", "auditor"])
def test_webhooks_and_deliveries_are_shown_without_what_may_be_secret(
    role: str, endpoint: WebhookEndpoint
) -> None:
    client = staff_client(role)
    listed = text_of(client.get(list_url(WebhookEndpoint), {"q": "erp.example.org"}))
    page = text_of(client.get(page_url(endpoint)))
    for text in (listed, page):
        assert "https://erp.example.org/… " in text
        assert "my-secret-path" not in text
    assert "system_user.blocked" in page
    assert "Delivered" in page
    assert "Given up" in page
    assert "timeout" in page
    found = client.get(list_url(WebhookEndpoint), {"q": "my-secret"}).context["cl"]
    assert found.result_count == 0


@pytest.mark.parametrize("role", ["viewer", "registrar", "account manager"])
def test_others_do_not_see_them(role: str, endpoint: WebhookEndpoint) -> None:
    assert staff_client(role).get(page_url(endpoint)).status_code == 403
