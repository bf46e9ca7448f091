"""Webhooks by the management API: registered, changed, rotated, tested, repeated."""

from datetime import timedelta
from typing import Any

import pytest

from identity.webhooks.endpoints import MOST_ENDPOINTS, send_test
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from taxpayers.models import Change
from taxpayers.moments import exact_text
from taxpayers.services import Author
from tests.introspection.api import token_of
from tests.management_api.portal import BASE, Portal, assert_ok, assert_problem, new_portal
from tests.support.answers import body_of
from tests.support.moments import now
from tests.webhooks.endpoints import BY, bodies, new_endpoint

pytestmark = pytest.mark.django_db


NEW = {"url": "https://portal.example.org/hooks?code=abc", "event_types": ["system_user.blocked"]}
KEY = '"8e03978e-40d5-43e8-bc93-6894a57f9324"'


def test_a_webhook_is_registered_and_its_secret_is_shown_once(portal: Portal) -> None:
    answer = portal.post("/webhooks", NEW | {"description": "Portal"}, Idempotency_Key=KEY)
    record = assert_ok(answer, 201)
    row = WebhookEndpoint.objects.get()
    issued = record.pop("issued")
    assert issued["secret"].startswith("whsec_")
    assert record == {
        "id": row.pk,
        "url": NEW["url"],
        "description": "Portal",
        "event_types": ["system_user.blocked"],
        "is_active": True,
        "client_id": portal.erp.client_id,
        "registered_at": row.created_at.isoformat().replace("+00:00", "Z"),
        "former_secret_until": None,
    }
    again = assert_ok(
        portal.post("/webhooks", NEW | {"description": "Portal"}, Idempotency_Key=KEY), 201
    )
    assert again["issued"]["secret"] is None
    assert "rotate-secret" in again["issued"]["note"]
    assert assert_ok(portal.get(f"/webhooks/{row.pk}")) == record
    assert body_of(portal.get("/webhooks"))["items"] == [record]
    # At rest it is encrypted, and the history has neither it nor the query of the URL.
    stored = f"{row.secret} {Change.objects.get().after} {Change.objects.get().label}"
    assert issued["secret"] not in stored
    assert issued["secret"][6:] not in stored
    assert Change.objects.get().after["url"] == "https://portal.example.org/…"
    assert "hooks" not in stored


def test_a_rotated_secret_is_shown_once_and_what_was_given_up_is_repeated(portal: Portal) -> None:
    """That both secrets sign, and when it is given up, test_delivering.py proves."""
    first = assert_ok(portal.post("/webhooks", NEW), 201)
    path = f"/webhooks/{first['id']}"
    second = assert_ok(portal.post(f"{path}/rotate-secret", {"reason": "x"}, If_Match="*"))
    assert second["issued"]["secret"] != first["issued"]["secret"]
    assert second["former_secret_until"] is not None
    assert_ok(portal.post(f"{path}/test", If_Match="*"))
    failed = {"state": "failed", "attempts": 10, "last_result": "HTTP 400"}
    WebhookDelivery.objects.update(**failed, last_attempt_at=now(), finished_at=now())

    def listed(state: str) -> Any:
        return body_of(portal.get(f"{path}/deliveries?state={state}"))["items"]

    (shown,) = listed("failed")
    assert shown == failed | {
        "id": WebhookDelivery.objects.get().pk,
        "webhook_id": WebhookEvent.objects.get().message_id,
        "path": "",
        "event_type": "webhook.test",
        "created_at": shown["created_at"],
        "last_attempt_at": shown["last_attempt_at"],
        "next_attempt_at": None,
    }
    assert_ok(portal.post(f"{path}/repeat-failed", {"since": "2037-01-01"}, If_Match="*"))
    assert listed("pending") == []
    assert_ok(portal.post(f"{path}/repeat-failed", If_Match="*"))
    (waiting,) = listed("pending")
    assert (waiting["attempts"], waiting["state"]) == (0, "pending")
    assert waiting["next_attempt_at"] is not None


def test_one_delivery_is_sent_now_and_names_its_record(portal: Portal) -> None:
    path = f"/webhooks/{assert_ok(portal.post('/webhooks', NEW), 201)['id']}"
    types = {"event_types": ["taxpayer.registered", "credential.ends_soon"]}
    assert_ok(portal.post(f"{path}/test", types, If_Match="*"))
    tomorrow = now() + timedelta(days=1)
    WebhookEndpoint.objects.update(paused_until=tomorrow)
    newest = {"state": "delivered", "finished_at": now(), "due_at": tomorrow}
    WebhookDelivery.objects.filter(event__type="credential.ends_soon").update(**newest)
    WebhookDelivery.objects.filter(state="pending").update(attempts=4, due_at=tomorrow)
    rows = assert_ok(portal.get(f"{path}/deliveries"))["items"]
    assert [(row["event_type"], row["path"]) for row in rows] == [
        ("taxpayer.registered", f"{BASE}/taxpayers/sample"),
        ("credential.ends_soon", f"{BASE}/system-users/sample"),
    ]
    ending, first = (event["data"] for event in bodies())
    assert first.items() >= {"kind": "taxpayer", "reference": None, "sample": True}.items()
    assert exact_text(now() + timedelta(days=6, hours=23)) < ending.pop("ends_at")
    assert ending | {"kind": "system_user", "credential": 0, "days": 7, "sample": True} == ending
    for row in rows:
        assert_ok(portal.post(f"{path}/deliveries/{row['id']}/resend", If_Match="*"))
        sent = WebhookDelivery.objects.get(pk=row["id"])
        assert (sent.state, sent.attempts, sent.finished_at) == ("pending", 0, None)
        assert sent.due_at <= now()
    assert WebhookEndpoint.objects.get().paused_until is None
    of_another = new_endpoint()
    send_test(endpoint=of_another, by=BY, at=now())
    other = of_another.deliveries.get().pk
    for number in (other, 2**63):
        answer = portal.post(f"{path}/deliveries/{number}/resend", If_Match="*")
        assert_problem(answer, 404, "not_found", "no such delivery")


def test_a_deleted_webhook_is_gone_and_its_history_stays(portal: Portal) -> None:
    path = f"/webhooks/{assert_ok(portal.post('/webhooks', NEW), 201)['id']}"
    assert_ok(portal.post(f"{path}/test", If_Match="*"))
    for _ in range(2):  # the second answer is the stored one
        key = {"If_Match": "*", "Idempotency_Key": "once"}
        answer = portal.post(f"{path}/delete", {"reason": "moved"}, **key)
        assert (answer.status_code, answer.content) == (204, b"")
    assert_problem(portal.get(path), 404, "not_found")
    assert not WebhookDelivery.objects.exists()
    change = Change.objects.get(action="delete_webhook")
    assert (change.reason, change.before["url"]) == ("moved", "https://portal.example.org/…")


def test_there_are_so_many_at_most_and_disabled_ones_do_not_count(portal: Portal) -> None:
    owner = Author.client(portal.erp.client_id)
    row, *_others = [new_endpoint(by=owner) for _ in range(MOST_ENDPOINTS)]
    assert_problem(portal.post("/webhooks", NEW), 422, "change_refused", "First disable one")
    assert_ok(portal.post(f"/webhooks/{row.pk}/disable", {"reason": "x"}, If_Match="*"))
    assert_problem(portal.post(f"/webhooks/{row.pk}/test", If_Match="*"), 422, "change_refused")
    assert_ok(portal.post("/webhooks", NEW), 201)
    enabling = portal.post(f"/webhooks/{row.pk}/enable", {"reason": "x"}, If_Match="*")
    assert_problem(enabling, 422, "change_refused", "First disable one")


def test_who_may_only_read_changes_none_and_sees_no_secret_of_its_own(portal: Portal) -> None:
    path = f"/webhooks/{assert_ok(portal.post('/webhooks', NEW), 201)['id']}"
    scope = "RegistryAPI:read"
    portal.erp.system_user.scopes = f"RegistryAPI {scope}"
    portal.erp.system_user.save()
    reader = Portal(portal.erp, token_of(portal.erp, scope=scope))
    assert reader.post("/webhooks", NEW).status_code == 403
    (listed,) = assert_ok(reader.get("/webhooks"))["items"]
    assert listed["url"] == assert_ok(reader.get(path))["url"] == "https://portal.example.org/…"


def test_only_its_owner_finds_a_webhook(portal: Portal) -> None:
    """Others are told what they are told of one that is none, and nothing is changed."""
    of_another = assert_ok(new_portal().post("/webhooks", NEW), 201)["id"]
    for number in (of_another, new_endpoint().pk):
        path, before = f"/webhooks/{number}", WebhookEndpoint.objects.values().get(pk=number)
        body = {"reason": "x"}
        answers = [
            *(portal.get(f"{path}{part}") for part in ("", "/deliveries", "/history")),
            portal.patch(path, NEW | body, If_Match="*"),
            *(
                portal.post(f"{path}/{task}", body, If_Match="*")
                for task in ("rotate-secret", "disable", "enable")
            ),
            *(portal.post(f"{path}/{task}", If_Match="*") for task in ("test", "repeat-failed")),
        ]
        for answer in answers:
            assert_problem(answer, 404, "not_found", "There is no such webhook.")
        assert WebhookEndpoint.objects.values().get(pk=number) == before
    assert assert_ok(portal.get("/webhooks"))["items"] == []
    assert not WebhookEvent.objects.exists()


def test_the_history_names_what_was_changed_without_the_secret_parts(portal: Portal) -> None:
    path = f"/webhooks/{assert_ok(portal.post('/webhooks', NEW), 201)['id']}"
    for body in (
        {"url": "https://portal.example.org/other"},
        {"description": "Portal"},
        {"description": "Portal"},  # it is so already
        {"url": "https://u.example:8443"},
    ):
        assert_ok(portal.patch(path, body | {"reason": "x"}, If_Match="*"))
    changes = body_of(portal.get(f"{path}/history"))["items"]
    address = "https://portal.example.org/…"
    assert [(change["before"], change["after"]) for change in changes[:-1]] == [
        ({"url": address}, {"url": "https://u.example:8443"}),
        ({"description": ""}, {"description": "Portal"}),
        ({"url": address}, {"url": address}),
    ]
