"""What ends soon is announced 30, 7 and 1 days before, once each."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from identity.webhooks import upkeep
from identity.webhooks.models import EndReminder
from identity.webhooks.upkeep import announce_ends
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
)
from tests.webhooks.endpoints import bodies, new_endpoint

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
AT = datetime(2027, 3, 1, 2, 30, tzinfo=UTC)


def announced(at: datetime) -> list[tuple[str, int]]:
    """Type and days of what is new at this moment."""
    before = len(bodies())
    announce_ends(at)
    return [(body["type"], body["data"]["days"]) for body in bodies()[before:]]


def secret_that_ends(moment: datetime, **fields: Any) -> Any:
    return CredentialFactory.create(created_at=AT - 300 * DAY, expires_at=moment, **fields)


def test_a_secret_is_announced_once_for_each_stage() -> None:
    new_endpoint()
    secret = secret_that_ends(AT + 31 * DAY)
    nights = [announced(AT + number * DAY) for number in range(33)]
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


def test_the_night_may_be_repeated_and_a_late_start_announces_only_the_latest_stage() -> None:
    new_endpoint()
    secret_that_ends(AT + 5 * DAY)
    assert announced(AT) == [("credential.ends_soon", 7)]
    assert announced(AT) == []


def test_another_end_is_announced_anew() -> None:
    new_endpoint()
    user = SystemUserFactory.create(expires_at=AT + 5 * DAY, created=AT - 9 * DAY)
    assert announced(AT) == [("system_user.ends_soon", 7)]
    user.expires_at = AT + 6 * DAY
    user.save()
    assert announced(AT) == [("system_user.ends_soon", 7)]


def test_every_kind_that_ends_is_announced_and_nothing_that_has_ended_or_was_revoked() -> None:
    new_endpoint()
    agent = IntermediaryFactory.create(active_until=AT + DAY / 2)
    granted = {"valid_from": AT - 9 * DAY, "intermediary": agent}
    GrantedPermissionFactory.create(valid_until=AT + DAY / 2, **granted)
    SystemUserFactory.create(expires_at=AT + DAY / 2)
    secret_that_ends(AT + DAY / 2)
    # These not.
    IntermediaryFactory.create(active_until=AT + DAY / 2, is_active=False)
    GrantedPermissionFactory.create(
        valid_until=AT + DAY / 2, revoked_at=AT - DAY, **(granted | {"intermediary": agent})
    )
    secret_that_ends(AT + DAY / 2, revoked_at=AT - DAY, slot=None)
    secret_that_ends(AT - DAY)
    secret_that_ends(AT + 40 * DAY)
    assert sorted(announced(AT)) == [
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
        secret_that_ends(AT + DAY * (2 if number < 5 else 3))
    assert announced(AT) == [("credential.ends_soon", 7)] * 7
    assert len({body["data"]["credential"] for body in bodies()}) == 7


def test_without_an_endpoint_nothing_is_stored() -> None:
    secret_that_ends(AT + 5 * DAY)
    assert announce_ends(AT) == 0
    assert not EndReminder.objects.exists()
    new_endpoint()
    assert announced(AT) == [("credential.ends_soon", 7)]
