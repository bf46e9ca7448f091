"""Changes become events: all that were committed, nothing else, in their order."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from identity.webhooks import upkeep
from identity.webhooks.models import EndReminder, WebhookDelivery, WebhookEvent
from identity.webhooks.publishing import publish_all_changes, publish_changes
from identity.webhooks.upkeep import announce_ends
from taxpayers import services
from taxpayers.models import Change
from taxpayers.services import Author
from taxpayers.services.decisions import decline_permission_request
from taxpayers.services.feed import chain
from tests.support import make
from tests.support.at_once import begin, end
from tests.support.moments import now
from tests.webhooks.endpoints import BY, bodies, new_endpoint

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BECAUSE: dict[str, Any] = {"reason": "x", "by": BY, "at": AT}


def test_a_block_is_an_event_with_identifiers_and_nothing_else() -> None:
    new_endpoint()
    system_user = make.system_user(name="Secret name")
    task = Author("officer").in_one_task()
    services.block_system_user(system_user=system_user, reason="stolen", by=task, at=AT)
    publish_all_changes(now())
    assert bodies() == [
        {
            "type": "system_user.blocked",
            "timestamp": "2026-03-01T12:00:00Z",
            "data": {
                "kind": "system_user",
                "id": system_user.client_id,
                "path": f"/api/v1/management/system-users/{system_user.client_id}",
                "reference": str(task.task_id),
            },
        }
    ]


def test_every_kind_of_record_has_its_events() -> None:
    new_endpoint()
    taxpayer = make.taxpayer(tin="C2584563222", rob="202001234567")
    agent = make.intermediary(taxpayer__tin="C9876543210")
    granted = make.permission(taxpayer=taxpayer, intermediary=agent)
    user = make.system_user(taxpayer=taxpayer)
    services.set_taxpayer_active(taxpayer=taxpayer, is_active=False, **BECAUSE)
    services.set_intermediary_active(intermediary=agent, is_active=False, **BECAUSE)
    services.revoke_permission(permission=granted, **BECAUSE)
    issued = services.issue_secret(reason="a test", system_user=user, by=BY, at=AT)
    services.revoke_credential(credential=issued.secret, **BECAUSE)
    asked = decline_permission_request(request=make.permission_request(), **BECAUSE)
    publish_all_changes(now())
    assert [(body["type"], body["data"]["id"]) for body in bodies()] == [
        ("taxpayer.deactivated", "C2584563222:202001234567"),
        ("intermediary.changed", "C9876543210"),
        ("permission.revoked", str(granted.pk)),
        ("credential.issued", user.client_id),
        ("credential.revoked", user.client_id),
        ("permission_request.declined", str(asked.pk)),
    ]
    text = "".join(WebhookEvent.objects.values_list("body", flat=True))
    assert issued.credentials.client_secret not in text
    assert issued.secret.hint not in text


def test_an_endpoint_gets_the_types_that_it_wants() -> None:
    everything = new_endpoint()
    blocks = new_endpoint(event_types=["system_user.blocked"])
    user = make.system_user()
    services.block_system_user(system_user=user, **BECAUSE)
    services.unblock_system_user(system_user=user, **BECAUSE)
    publish_all_changes(now())
    rows = WebhookDelivery.objects.order_by("pk").values_list("endpoint", "event__type")
    assert list(rows) == [
        (everything.pk, "system_user.blocked"),
        (blocks.pk, "system_user.blocked"),
        (everything.pk, "system_user.unblocked"),
    ]
    assert WebhookEvent.objects.count() == 2  # the same one for both


def test_what_was_before_the_registration_is_not_sent_and_nothing_is_sent_twice() -> None:
    user = make.system_user()
    services.block_system_user(system_user=user, **BECAUSE)
    new_endpoint()
    publish_all_changes(now())
    publish_all_changes(now())
    assert bodies() == []
    services.unblock_system_user(system_user=user, **BECAUSE)
    publish_all_changes(now())
    publish_all_changes(now())
    assert [body["type"] for body in bodies()] == ["system_user.unblocked"]


def test_a_change_that_is_rolled_back_leaves_nothing() -> None:
    new_endpoint()
    user = make.system_user()
    with transaction.atomic():
        services.block_system_user(system_user=user, **BECAUSE)
        transaction.set_rollback(True)
    user.refresh_from_db()
    assert user.blocked_at is None
    publish_all_changes(now())
    assert bodies() == []


def test_without_an_endpoint_changes_only_get_their_places(
    django_assert_max_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "BATCH", 2)
    taxpayer = make.taxpayer()
    for number in range(5):
        services.rename_taxpayer(taxpayer=taxpayer, name=f"Name {number}", **BECAUSE)
    assert [len(publish_changes(now())) for _ in range(4)] == [2, 2, 1, 0]
    assert list(Change.objects.order_by("pk").values_list("position", flat=True)) == [1, 2, 3, 4, 5]
    assert not WebhookEvent.objects.exists()
    with django_assert_max_num_queries(1):  # as long as nothing happens
        publish_changes(now())


@pytest.mark.postgresql
def test_the_longest_identifier_that_the_tables_take_stops_no_event() -> None:
    """SQLite would store any length."""
    new_endpoint()
    taxpayer = make.taxpayer(tin="T" * 64, rob="R" * 64)
    services.rename_taxpayer(taxpayer=taxpayer, name="New", **BECAUSE)
    publish_all_changes(now())
    assert [body["data"]["id"] for body in bodies()] == [str(taxpayer.identifier)]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_change_that_is_committed_late_is_behind_those_that_were_seen() -> None:
    """The id of the late one is smaller: who had read by ids would never see it."""
    new_endpoint()
    late, early = make.taxpayer(), make.taxpayer()
    recorded, go_on = threading.Event(), threading.Event()

    def change_and_wait() -> None:
        with transaction.atomic():
            services.rename_taxpayer(taxpayer=late, name="Late", **BECAUSE)
            recorded.set()
            assert go_on.wait(20)

    thread = begin(change_and_wait)
    assert recorded.wait(20)
    services.rename_taxpayer(taxpayer=early, name="Early", **BECAUSE)
    publish_all_changes(now())
    assert [body["data"]["id"] for body in bodies()] == [str(early.identifier)]
    go_on.set()
    end(thread)
    publish_all_changes(now() + timedelta(seconds=1))
    both = [str(early.identifier), str(late.identifier)]
    assert [body["data"]["id"] for body in bodies()] == both
    renamed = Change.objects.filter(action="rename_taxpayer").order_by("position")
    assert [change.after["name"] for change in renamed] == ["Early", "Late"]
    assert renamed[0].pk > renamed[1].pk


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_two_that_publish_at_once_publish_each_change_once() -> None:
    new_endpoint()
    taxpayer = make.taxpayer()
    for number in range(40):
        services.rename_taxpayer(taxpayer=taxpayer, name=f"Name {number}", **BECAUSE)

    end(*(begin(lambda: publish_all_changes(now())) for _ in range(4)))
    assert WebhookEvent.objects.count() == 40
    positions = Change.objects.order_by("pk").values_list("position", flat=True)
    assert list(positions) == list(range(1, 42))  # the first one is the registration


DAY = timedelta(days=1)
MORNING = datetime(2027, 3, 1, 2, 30, tzinfo=UTC)


def announced(at: datetime) -> list[tuple[str, int]]:
    before = len(bodies())
    announce_ends(at)
    return [(body["type"], body["data"]["days"]) for body in bodies()[before:]]


def secret_that_ends(moment: datetime, **fields: Any) -> Any:
    return make.credential(created_at=MORNING - 300 * DAY, expires_at=moment, **fields)


def test_a_secret_is_announced_once_for_each_stage() -> None:
    new_endpoint()
    secret = secret_that_ends(MORNING + 31 * DAY)
    nights = [announced(MORNING + number * DAY) for number in range(33)]
    found = [(number, *night) for number, night in enumerate(nights) if night]
    assert found == [
        (1, ("credential.ends_soon", 30)),
        (24, ("credential.ends_soon", 7)),
        (30, ("credential.ends_soon", 1)),
    ]
    assert bodies()[0]["data"] == {
        "kind": "system_user",
        "id": secret.system_user.client_id,
        "path": f"/api/v1/management/system-users/{secret.system_user.client_id}",
        "ends_at": "2027-04-01T02:30:00Z",
        "days": 30,
        "credential": secret.pk,
    }
    assert not EndReminder.objects.exists()  # nothing is left of what has ended


def test_the_night_may_be_repeated_and_a_late_start_announces_only_the_latest_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new_endpoint()
    secret_that_ends(MORNING + 5 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(upkeep, "store_events", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            announce_ends(MORNING)  # and nothing is announced
    assert announced(MORNING) == [("credential.ends_soon", 7)]
    assert announced(MORNING) == []


def test_another_end_is_announced_anew() -> None:
    new_endpoint()
    user = make.system_user(expires_at=MORNING + 5 * DAY, created=MORNING - 9 * DAY)
    assert announced(MORNING) == [("system_user.ends_soon", 7)]
    user.expires_at = MORNING + 6 * DAY
    user.save()
    assert announced(MORNING) == [("system_user.ends_soon", 7)]


def test_every_kind_that_ends_is_announced_and_nothing_that_has_ended_or_was_revoked() -> None:
    new_endpoint()
    agent = make.intermediary(active_until=MORNING + DAY / 2)
    granted = {"valid_from": MORNING - 9 * DAY, "intermediary": agent}
    make.permission(valid_until=MORNING + DAY / 2, **granted)
    make.system_user(expires_at=MORNING + DAY / 2)
    secret_that_ends(MORNING + DAY / 2)
    # These not.
    make.intermediary(active_until=MORNING + DAY / 2, is_active=False)
    make.permission(valid_until=MORNING + DAY / 2, revoked_at=MORNING - DAY, **granted)
    secret_that_ends(MORNING + DAY / 2, revoked_at=MORNING - DAY, slot=None)
    secret_that_ends(MORNING - DAY)
    secret_that_ends(MORNING + 40 * DAY)
    assert sorted(announced(MORNING)) == [
        ("credential.ends_soon", 1),
        ("intermediary.ends_soon", 1),
        ("permission.ends_soon", 1),
        ("system_user.ends_soon", 1),
    ]


def test_many_that_end_at_the_same_moment_are_all_announced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upkeep, "_BATCH", 2)
    new_endpoint()
    for number in range(7):
        secret_that_ends(MORNING + DAY * (2 if number < 5 else 3))
    assert announced(MORNING) == [("credential.ends_soon", 7)] * 7
    assert len({body["data"]["credential"] for body in bodies()}) == 7


def test_without_an_endpoint_nothing_is_stored() -> None:
    secret_that_ends(MORNING + 5 * DAY)
    assert announce_ends(MORNING) == 0
    assert not EndReminder.objects.exists()
    new_endpoint()
    assert announced(MORNING) == [("credential.ends_soon", 7)]
