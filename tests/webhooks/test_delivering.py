"""Deliveries to real receivers: at least once, in the order of each record, until they arrive."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, transaction
from pytest_django import Settings
from standardwebhooks.webhooks import Webhook

from identity.webhooks.endpoints import (
    register_webhook,
    repeat_failed,
    rotate_webhook_secret,
    send_test,
    set_webhook_active,
)
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint
from identity.webhooks.secret_storage import encrypt
from identity.webhooks.sending import delivering, http_client
from identity.webhooks.sending.attempts import Outcome
from identity.webhooks.sending.delivering import lease_due, mark
from taxpayers.models import Change, SystemUser, Taxpayer
from taxpayers.services import (
    Author,
    block_system_user,
    issue_secret,
    revoke_credential,
    set_taxpayer_active,
    unblock_system_user,
)
from taxpayers.validation import ServiceError
from tests.management_api.portal import SCOPES
from tests.support import make
from tests.support.at_once import begin, end
from tests.support.erp import new_erp
from tests.support.moments import now
from tests.webhooks.endpoints import BY, deliver_all, make_due, new_endpoint, states
from tests.webhooks.receiver import Receiver, receiving, status

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
BECAUSE: dict[str, Any] = {"reason": "x", "by": BY, "at": now()}


def changes_of(user: Any, count: int = 1) -> None:
    for number in range(count):
        service = unblock_system_user if number % 2 else block_system_user
        service(system_user=user, reason="x", by=BY, at=now())


def test_a_block_is_delivered_and_its_signature_is_right(receiver: Receiver) -> None:
    issued = register_webhook(url=receiver.url, by=BY, at=now())
    user = make.system_user()
    changes_of(user)
    deliver_all()
    (request,) = receiver.received
    body = Webhook(issued.secret).verify(request.body, request.headers)
    assert (body["type"], body["data"]["id"]) == ("system_user.blocked", user.client_id)
    assert request.line == "POST /hooks?a=1 HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert states() == [("delivered", 1, "HTTP 204")]
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.delivered, endpoint.failed_attempts, endpoint.given_up) == (1, 0, 0)
    assert endpoint.last_delivered_at is not None


def test_for_a_day_the_former_secret_signs_as_well(receiver: Receiver) -> None:
    first = register_webhook(url=receiver.url, by=BY, at=now())
    second = rotate_webhook_secret(endpoint=first.endpoint, reason="x", by=BY, at=now())
    send_test(endpoint=first.endpoint, by=BY, at=now())
    deliver_all()
    WebhookEndpoint.objects.update(former_secret_until=now())
    send_test(endpoint=first.endpoint, by=BY, at=now())
    deliver_all()
    during, after = receiver.received
    for secret in (first.secret, second.secret):
        assert Webhook(secret).verify(during.body, during.headers)["type"] == "webhook.test"
    assert len(during.headers["webhook-signature"].split()) == 2
    assert Webhook(second.secret).verify(after.body, after.headers)
    assert len(after.headers["webhook-signature"].split()) == 1


def test_what_failed_is_tried_again_with_the_same_id_and_body_and_a_new_timestamp() -> None:
    with receiving(status(500)) as receiver:
        new_endpoint(receiver.url)
        changes_of(make.system_user())
        deliver_all()
        assert states() == [("pending", 1, "HTTP 500")]
        row = WebhookDelivery.objects.get()
        assert timedelta(seconds=3) < row.due_at - now() <= timedelta(seconds=5)
        make_due()
        deliver_all()
        first, second = receiver.received
    assert states() == [("delivered", 2, "HTTP 204")]
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])


def test_after_ten_attempts_it_is_given_up_and_can_be_repeated() -> None:
    with receiving(*[status(400)] * 10) as receiver:
        endpoint = new_endpoint(receiver.url)
        changes_of(make.system_user())
        for _attempt in range(11):
            make_due()
            deliver_all()
        assert states() == [("failed", 10, "HTTP 400")]
        assert len(receiver.received) == 10
        assert repeat_failed(endpoint=endpoint, since=now(), by=BY, at=now()) == 0
        assert repeat_failed(endpoint=endpoint, since=now() - DAY, by=BY, at=now()) == 1
        deliver_all()
        assert len(set(receiver.ids)) == 1
    assert states() == [("delivered", 1, "HTTP 204")]
    endpoint.refresh_from_db()
    assert (endpoint.delivered, endpoint.failed_attempts, endpoint.given_up) == (1, 10, 1)


def test_events_of_one_record_come_in_their_order_and_others_do_not_wait() -> None:
    with receiving(status(500)) as receiver:
        new_endpoint(receiver.url)
        first, other = make.system_user(), make.system_user()
        changes_of(first)
        deliver_all()  # fails, and is tried again later
        changes_of(first, 2)  # it is blocked before: only the second one changes something
        changes_of(other)
        deliver_all()
        assert [state for state, *_ in states()] == ["pending", "pending", "delivered"]
        make_due()
        deliver_all()
        bodies = [request.body for request in receiver.received]
    mine = [body for body in bodies if first.client_id.encode() in body]
    assert [b"unblocked" in body for body in mine] == [False, False, True]
    assert {state for state, *_ in states()} == {"delivered"}


def test_410_disables_the_endpoint_with_its_reason_in_the_history() -> None:
    with receiving(status(410)) as receiver:
        endpoint = new_endpoint(receiver.url)
        changes_of(make.system_user())
        deliver_all()
        changes_of(make.system_user())
        deliver_all()
        assert len(receiver.received) == 1
    endpoint.refresh_from_db()
    assert not endpoint.is_active
    assert states() == [("failed", 1, "HTTP 410")]
    change = Change.objects.get(action="disable_webhook")
    assert (change.by, change.after) == ("deliver_webhooks (manage.py)", {"is_active": False})
    assert "410 Gone" in change.reason


@pytest.mark.parametrize("code", [429, 503])
def test_a_receiver_that_has_too_much_gets_nothing_until_it_wants_it(code: int) -> None:
    with receiving(status(code, "Retry-After: 3600")) as receiver:
        endpoint = new_endpoint(receiver.url)
        for _ in range(3):
            send_test(endpoint=endpoint, by=BY, at=now())
        endpoint.failures = 1  # one at a time, to see how it answers
        endpoint.save()
        deliver_all()
        assert len(receiver.received) == 1
        endpoint.refresh_from_db()
        assert endpoint.paused_until is not None
        assert timedelta(minutes=59) < endpoint.paused_until - now() <= timedelta(hours=1)
        first = WebhookDelivery.objects.order_by("pk")[0]
        assert first.due_at - now() > timedelta(minutes=59)
        make_due()
        deliver_all()
    assert [state for state, *_ in states()] == ["delivered"] * 3
    assert WebhookEndpoint.objects.filter(failures=0, paused_until=None).exists()


def test_a_receiver_that_is_away_is_asked_once_and_then_gets_a_pause(nowhere: str) -> None:
    endpoint = new_endpoint(nowhere)
    for _ in range(6):
        send_test(endpoint=endpoint, by=BY, at=now())
    deliver_all()
    endpoint.refresh_from_db()
    assert endpoint.paused_until is not None
    assert endpoint.failed_attempts <= 4  # those that had begun
    before = endpoint.failed_attempts
    make_due()
    deliver_all()
    endpoint.refresh_from_db()
    assert endpoint.failed_attempts == before + 1


def test_one_receiver_that_hangs_does_not_hold_up_another(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    sent: list[str] = []

    def post(url: str, *_more: Any, **_options: Any) -> Outcome:
        if "slow" in url:
            go_on.wait(20)
        sent.append(url)
        if len(sent) == 5:
            go_on.set()
        return Outcome(204)

    monkeypatch.setattr(http_client, "post", post)
    slow = new_endpoint("https://slow.example/")
    quick = new_endpoint("https://quick.example/")
    for endpoint in [slow] * 5 + [quick] * 5:
        send_test(endpoint=endpoint, by=BY, at=now())
    deliver_all()
    assert sent[:5] == ["https://quick.example/"] * 5
    assert sorted(sent[5:]) == ["https://slow.example/"] * 5


def test_a_disabled_endpoint_gets_what_waits_when_it_is_enabled_again(receiver: Receiver) -> None:
    endpoint = new_endpoint(receiver.url)
    user = make.system_user()
    send_test(endpoint=endpoint, by=BY, at=now())
    set_webhook_active(endpoint=endpoint, is_active=False, reason="x", by=BY, at=now())
    deliver_all()
    assert receiver.received == []
    changes_of(user)
    set_webhook_active(endpoint=endpoint, is_active=True, reason="x", by=BY, at=now())
    changes_of(user, 2)
    deliver_all()
    kinds = [request.body.split(b'"')[3] for request in receiver.received]
    assert sorted(kinds) == [b"system_user.unblocked", b"webhook.test"]


def block(user: SystemUser) -> object:
    return block_system_user(system_user=user, **BECAUSE)


def unblock(user: SystemUser) -> object:
    return unblock_system_user(system_user=user, **BECAUSE)


def active(is_active: bool) -> Callable[[SystemUser], object]:
    return lambda user: set_taxpayer_active(taxpayer=user.taxpayer, is_active=is_active, **BECAUSE)


def changed_to(**fields: Any) -> Callable[[SystemUser], object]:
    return lambda user: SystemUser.objects.filter(pk=user.pk).update(**fields)


def credentials_end(at: datetime) -> Callable[[SystemUser], object]:
    return lambda user: user.credentials.update(created_at=now() - 9 * DAY, expires_at=at)


# What ends the webhooks of a client, and what lets them go on; and whether they do by themselves.
ENDS: dict[str, tuple[Callable[[SystemUser], object], Callable[[SystemUser], object], bool]] = {
    "blocked": (block, unblock, False),
    "taxpayer inactive": (active(False), active(True), False),
    "expired": (changed_to(expires_at=now() - DAY), changed_to(expires_at=None), True),
    "without the scope": (
        changed_to(scopes="InvoicingAPI"),
        changed_to(scopes="RegistryAPI"),
        True,
    ),
    "no secret": (credentials_end(now() - DAY), credentials_end(now() + DAY), True),
    "revoked": (
        lambda user: revoke_credential(credential=user.credentials.get(), **BECAUSE),
        lambda user: issue_secret(system_user=user, **BECAUSE),
        True,
    ),
}
OTHER = "taxpayer.renamed"  # what happens to the owner is no message


@pytest.fixture
def owner(settings: Settings) -> SystemUser:
    settings.SCOPES = SCOPES
    return new_erp(scopes="RegistryAPI").system_user


@pytest.mark.parametrize("name", ENDS)
def test_a_webhook_ends_with_its_owner(receiver: Receiver, owner: SystemUser, name: str) -> None:
    ends, begins, goes_on = ENDS[name]
    endpoint = new_endpoint(receiver.url, by=Author.client(owner.client_id), event_types=[OTHER])
    send_test(endpoint=endpoint, by=BY, at=now())  # queued before the end
    ends(owner)
    deliver_all()
    assert receiver.received == []
    with pytest.raises(ServiceError, match="may not use the management API now"):
        set_webhook_active(endpoint=endpoint, is_active=True, **BECAUSE)
    begins(owner)
    deliver_all()
    assert len(receiver.received) == goes_on
    endpoint.refresh_from_db()
    assert endpoint.is_active is goes_on
    if not goes_on:
        change = Change.objects.get(action="disable_webhook")
        assert change.reason.startswith("The client that registered it was blocked, or")
        set_webhook_active(endpoint=endpoint, is_active=True, **BECAUSE)
        deliver_all()
        assert len(receiver.received) == 1


def test_a_block_counts_though_it_was_lifted_before_a_deliverer_ran(
    receiver: Receiver, owner: SystemUser
) -> None:
    stolen = new_endpoint(receiver.url, by=Author.client(owner.client_id), event_types=[OTHER])
    of_operators = new_endpoint(receiver.url, event_types=[OTHER])
    for endpoint in (stolen, of_operators):
        send_test(endpoint=endpoint, by=BY, at=now())
    block(owner)
    unblock(owner)
    deliver_all()
    assert {state for state, *_ in states(endpoint=stolen)} == {"pending"}
    assert {state for state, *_ in states(endpoint=of_operators)} == {"delivered"}
    assert list(WebhookEndpoint.objects.filter(is_active=True)) == [of_operators]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_block_waits_for_a_registration_that_is_under_way(owner: SystemUser) -> None:
    """Else a stolen token could commit one after the block, as if it had been confirmed since."""
    refused: list[type] = []

    def lock(model: Any) -> None:
        with pytest.raises(OperationalError), transaction.atomic():
            model.objects.select_for_update(nowait=True).get()
        refused.append(model)

    with transaction.atomic():
        new_endpoint(by=Author.client(owner.client_id))
        end(*(begin(partial(lock, model)) for model in (SystemUser, Taxpayer)))
    assert set(refused) == {SystemUser, Taxpayer}


def test_a_row_that_cannot_be_sent_is_a_failed_attempt_of_one_delivery(receiver: Receiver) -> None:
    broken, honest = new_endpoint(receiver.url), new_endpoint(receiver.url)
    WebhookEndpoint.objects.filter(pk=broken.pk).update(secret=encrypt("whsec_!"))
    for endpoint in (broken, honest):
        send_test(endpoint=endpoint, by=BY, at=now())
    deliver_all()
    assert states() == [
        ("pending", 1, "a fault of this service: see its log"),
        ("delivered", 1, "HTTP 204"),
    ]


def test_a_message_to_an_address_inside_is_not_sent(receiver: Receiver, settings: Settings) -> None:
    new_endpoint(receiver.url)
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    changes_of(make.system_user())
    deliver_all()
    assert receiver.received == []
    assert states() == [("pending", 1, "not allowed: it must begin with https://")]


def test_a_secret_that_cannot_be_decrypted_is_named_and_replaced(
    receiver: Receiver, settings: Settings
) -> None:
    endpoint = new_endpoint(receiver.url)
    settings.KEY_ENCRYPTION_KEYS = ["another-one-0123456789-abcdefghijklmnopqrstuvwxyz-0123456789"]
    changes_of(make.system_user())
    deliver_all()
    ((state, _attempts, result),) = states()
    assert (state, result[:31]) == ("pending", "its secret cannot be decrypted:")
    assert receiver.received == []
    rotate_webhook_secret(endpoint=endpoint, **BECAUSE)
    make_due()
    deliver_all()
    assert len(receiver.received) == 1


def test_what_a_dead_deliverer_had_begun_is_sent_by_another_when_its_lease_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send_test(endpoint=new_endpoint(), by=BY, at=now())
    at = now()
    ((first, _),) = lease_due(at, 16)
    assert lease_due(at + delivering.LEASE - timedelta(seconds=1), 16) == []
    ((second, _),) = lease_due(at + delivering.LEASE, 16)
    assert first.pk == second.pk
    # The first one was only slow: what it marks now does not count.
    assert not mark(first, Outcome(500), now(), lambda: 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(WebhookEndpoint, "save", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mark(second, Outcome(200), now(), lambda: 0.0)  # and nothing is stored
    assert mark(second, Outcome(200), now(), lambda: 0.0)
    assert states() == [("delivered", 1, "HTTP 200")]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_of_several_deliverers_each_sends_other_messages(receiver: Receiver) -> None:
    endpoint = new_endpoint(receiver.url)
    users = [make.system_user() for _ in range(20)]
    for user in users:
        changes_of(user, 2)

    end(*(begin(deliver_all) for _ in range(3)))
    deliver_all()
    assert len(receiver.ids) == len(set(receiver.ids)) == 40
    endpoint.refresh_from_db()
    assert endpoint.delivered == 40
    for user in users:
        mine = [r.body for r in receiver.received if user.client_id.encode() in r.body]
        assert [b"unblocked" in body for body in mine] == [False, True]
