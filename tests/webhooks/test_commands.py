"""The commands of operators, and what they, Prometheus and staff see."""

import os
import signal
import socket
import threading
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import InvalidToken
from django.db import OperationalError, connections
from pytest_django import Settings
from standardwebhooks.webhooks import Webhook

from identity.webhooks.management import delivery_commands
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from identity.webhooks.secret_storage import secrets_in_force
from identity.webhooks.sending.delivering import Deliverer
from taxpayers.models import Change
from tests.endpoint.test_metrics import scraped
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.moments import now
from tests.support.staff import list_url, page_url, staff_client, text_of
from tests.webhooks.endpoints import new_endpoint, states
from tests.webhooks.receiver import OK, receiving, status

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def command(name: str, row: WebhookEndpoint | int, *more: str) -> dict[str, Any]:
    number = row if isinstance(row, int) else row.pk
    return json_output_of(name, str(number), *more)


def test_an_operator_does_with_a_webhook_what_a_client_may_do_with_its_own() -> None:
    with receiving() as receiver:
        issued = json_output_of("register_webhook", receiver.url, "--reason", "portal")
        row = WebhookEndpoint.objects.get(pk=issued["id"])
        sent = command("send_test_webhook", row)
        output_of("deliver_webhooks", "--once")
        (request,) = receiver.received
        assert request.headers["webhook-id"] == sent["webhook_id"]
        assert Webhook(issued["secret"]).verify(request.body, request.headers)
        (listed,) = json_output_of("list_webhooks")["webhooks"]
        assert (listed["delivered"], listed["waiting"], listed["failed"]) == (1, 0, 0)
        assert listed["oldest_waiting_seconds"] == 0
        assert listed["last_result"] == "HTTP 204"
        assert "1 delivered, 0 waiting" in output_of("list_webhooks")
        change = Change.objects.get(action="register_webhook")
        assert (change.reason, change.by[-11:]) == ("portal", "(manage.py)")
        assert command("disable_webhook", row)["is_active"] is False
        assert "disabled" in output_of("list_webhooks")
        assert "Enable it first" in error_of("send_test_webhook", str(row.pk))
        assert command("enable_webhook", row)["is_active"] is True
        WebhookDelivery.objects.update(state=WebhookDelivery.FAILED)
        assert command("repeat_webhook", row, "--since", "2037-01-01") == {"repeated": 0}
        assert command("repeat_webhook", row) == {"repeated": 1}
        receiver.answers.append(stop_and_answer)
        output_of("deliver_webhooks")  # what is under way when it is stopped is finished
    assert states() == [("delivered", 1, "HTTP 204")]


def stop_and_answer(line: socket.socket) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    line.sendall(OK)


def test_every_night_old_deliveries_go_and_what_waits_too_long_is_given_up(
    settings: Settings,
) -> None:
    settings.WEBHOOK_RETENTION_DAYS = 30
    row = new_endpoint()
    under_way = now() + DAY
    for age, state, leased_until in [
        *((31, "delivered", None), (29, "delivered", None), (31, "pending", None)),
        *((29, "pending", None), (31, "pending", under_way)),
    ]:
        sent = command("send_test_webhook", row)["webhook_id"]
        moment = now() - age * DAY
        end = moment if state == "delivered" else None
        rows = WebhookDelivery.objects.filter(event=sent)
        rows.update(created_at=moment, state=state, finished_at=end, leased_until=leased_until)
        WebhookEvent.objects.filter(pk=sent).update(created_at=moment)
    done = {"expired": 0, "announced": 0, "given_up": 1, "deleted": 1}
    assert json_output_of("nightly_webhooks") == done
    assert [state for state, *_ in states()] == ["delivered", "failed", "pending", "pending"]
    assert WebhookEvent.objects.count() == 4
    row.refresh_from_db()
    assert row.given_up == 1
    assert json_output_of("nightly_webhooks") == dict.fromkeys(done, 0)


def test_every_night_secrets_are_encrypted_with_the_newest_key(settings: Settings) -> None:
    lost, row = new_endpoint(), new_endpoint()
    WebhookEndpoint.objects.filter(pk=lost.pk).update(secret="of a key that is gone")
    output_of("rotate_webhook_secret", str(row.pk))
    row.refresh_from_db()
    before = secrets_in_force(row, now())
    (old,) = settings.KEY_ENCRYPTION_KEYS
    new = "another-one-0123456789-abcdefghijklmnopqrstuvwxyz-0123456789"
    settings.KEY_ENCRYPTION_KEYS = [new, old]
    assert f"webhook {lost.pk} " in error_of("nightly_webhooks")
    row.refresh_from_db()
    settings.KEY_ENCRYPTION_KEYS = [new]
    assert secrets_in_force(row, now()) == before
    settings.KEY_ENCRYPTION_KEYS = [old]
    with pytest.raises(InvalidToken):
        secrets_in_force(row, now())


def metrics() -> dict[str, float]:
    return {name: value for name, value in scraped().items() if name.startswith("webhook")}


def test_prometheus_sees_what_was_delivered_and_how_long_the_oldest_waits() -> None:
    assert metrics() == {
        "webhook_deliveries_total delivered": 0,
        "webhook_deliveries_total failed_attempt": 0,
        "webhook_deliveries_total given_up": 0,
        "webhook_waiting": 0,
        "webhook_oldest_waiting_seconds": 0,
    }
    with receiving(status(500)) as receiver:
        row = new_endpoint(receiver.url)
        command("send_test_webhook", row)
        output_of("deliver_webhooks", "--once")
        command("send_test_webhook", row)
        output_of("deliver_webhooks", "--once")
    WebhookDelivery.objects.update(created_at=now() - DAY)
    seen = metrics()
    (listed,) = json_output_of("list_webhooks")["webhooks"]
    for seconds in (seen.pop("webhook_oldest_waiting_seconds"), listed["oldest_waiting_seconds"]):
        assert 86_400 <= seconds < 86_460
    assert seen == {
        "webhook_deliveries_total delivered": 1,
        "webhook_deliveries_total failed_attempt": 1,
        "webhook_deliveries_total given_up": 0,
        "webhook_waiting": 1,
    }
    WebhookEndpoint.objects.update(is_active=False)  # nothing is to be done
    assert metrics()["webhook_waiting"] == 0


@pytest.mark.parametrize("role", ["security officer", "auditor"])
def test_staff_see_webhooks_and_deliveries_without_what_may_be_secret(role: str) -> None:
    client, lists = staff_client(role), list_url(WebhookEndpoint)
    assert "operators by manage.py register_webhook" in text_of(client.get(lists))
    row = new_endpoint("https://erp.example.org/hooks/my-secret-path")
    for state, result in ((WebhookDelivery.DELIVERED, "204"), (WebhookDelivery.FAILED, "timeout")):
        sent = WebhookDelivery.objects.filter(event=command("send_test_webhook", row)["webhook_id"])
        sent.update(state=state, last_result=result)
    listed = text_of(client.get(lists, {"q": "erp.example.org"}))
    page = text_of(client.get(page_url(row)))
    for text in (listed, page):
        assert "https://erp.example.org/… " in text
        assert "my-secret-path" not in text
    for shown in ("webhook.test", "Delivered", "Given up", "timeout"):
        assert shown in page
    assert client.get(lists, {"q": "my-secret"}).context["cl"].result_count == 0


def test_an_outage_ends_no_deliverer_and_is_in_its_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stopped, closed, deliverer = threading.Event(), list[str](), Deliverer()

    def step(_seconds: float) -> bool:
        stopped.set() if caplog.records else None
        raise OperationalError

    monkeypatch.setattr(deliverer, "step", step)
    monkeypatch.setattr(delivery_commands, "_OUTAGE_SECONDS", 0)
    monkeypatch.setattr(connections, "close_all", lambda: closed.append("all"))
    delivery_commands._run(deliverer, stopped)
    assert [record.message for record in caplog.records] == ["webhooks: trying again"] * 2
    assert closed == ["all"] * 2
