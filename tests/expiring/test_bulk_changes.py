"""Several unblocked or revoked at once: what happens to each is shown before it is done."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from uuid_utils.compat import uuid7

from taxpayers.models import Change, ClientSecret, GrantedPermission, SystemUser
from taxpayers.services import Author, block_system_user
from tests.staff.test_bulk import act_on
from tests.support.erp import new_erp
from tests.support.factories import (
    ClientSecretFactory,
    GrantedPermissionFactory,
    SystemUserFactory,
)
from tests.support.staff import REGISTRAR, SECURITY_OFFICER, staff_client, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.fixture
def officer(db: None) -> Client:
    return staff_client(SECURITY_OFFICER)


def blocked(**facts: Any) -> SystemUser:
    user: SystemUser = ClientSecretFactory.create(**facts).system_user
    return block_system_user(
        system_user=user, reason="Secret in a ticket", by=Author("badrul"), at=timezone.now()
    )


def test_unblocking_several_shows_why_each_was_blocked_and_what_works_again(
    officer: Client,
) -> None:
    users = [blocked(), blocked(created_at=timezone.now() - 400 * DAY), SystemUserFactory.create()]
    shown = text_of(act_on(officer, SystemUser, "unblock_system_user", users))
    assert "Blocked by badrul since" in shown
    assert "Reason: Secret in a ticket" in shown
    assert "Active 1 secret works again." in shown
    assert "No valid secret" in shown
    assert "Not changed It is not blocked." in shown
    form = {"confirmed": "1", "reason": "replaced"}
    done = act_on(officer, SystemUser, "unblock_system_user", users, **form)
    assert "2 done. 1 was not changed." in text_of(done)
    assert not SystemUser.objects.filter(blocked_at__isnull=False).exists()
    assert Change.objects.filter(reason="replaced").values("task_id").distinct().count() == 1


def test_every_secret_of_several_is_revoked_and_none_can_log_in(officer: Client) -> None:
    leaked, other = new_erp(), new_erp()
    users = list(SystemUser.objects.filter(client_id=leaked.client_id))
    second = ClientSecretFactory.create(system_user=users[0], slot=2)
    without = SystemUserFactory.create()
    shown = text_of(act_on(officer, SystemUser, "revoke_every_secret", [*users, without]))
    assert f"…{leaked.client_secret[-4:]}" in shown
    assert str(second) in shown
    assert "No valid secret: it cannot log in before another one is issued." in shown
    assert "Not changed It has no valid secret." in shown
    form = {"confirmed": "1", "reason": "leaked at the maker"}
    act_on(officer, SystemUser, "revoke_every_secret", [*users, without], **form)
    live = ClientSecret.objects.filter(revoked_at=None)
    assert [secret.system_user.client_id for secret in live] == [other.client_id]
    changes = Change.objects.filter(reason="leaked at the maker")
    assert changes.count() == 2
    assert changes.values("task_id").distinct().count() == 1


def test_several_permissions_are_revoked_and_their_last_use_is_shown() -> None:
    client = staff_client(REGISTRAR)
    used, unused, over = GrantedPermissionFactory.create_batch(3)
    GrantedPermission.objects.filter(pk=over.pk).update(revoked_at=timezone.now())
    LoginEvent(
        pk=uuid7(),
        at=timezone.now(),
        subject=str(used.taxpayer.identifier),
        actor=str(used.intermediary.taxpayer.identifier),
    ).save()
    rows = [used, unused, over]
    shown = text_of(act_on(client, GrantedPermission, "revoke_permission", rows))
    today = timezone.localtime()
    assert f"Revoked Last used: {today.day} {today:%b %Y}" in shown
    assert "Revoked Last used: Not in 30 days." in shown
    assert "Not changed It is already revoked." in shown
    form = {"confirmed": "1", "reason": "contract ended"}
    done = act_on(client, GrantedPermission, "revoke_permission", rows, **form)
    assert "2 done. 1 was not changed." in text_of(done)
    assert not GrantedPermission.objects.filter(revoked_at=None).exists()


def test_if_none_can_be_changed_there_is_no_button(officer: Client) -> None:
    user = SystemUserFactory.create()
    page = act_on(officer, SystemUser, "unblock_system_user", [user])
    assert "None of them can be changed." in text_of(page)
    assert 'name="confirmed"' not in page.content.decode()


@pytest.mark.parametrize("task", ["unblock_system_user", "revoke_every_secret"])
def test_a_registrar_neither_unblocks_nor_revokes_secrets(task: str) -> None:
    user = blocked()
    changes = Change.objects.count()
    act_on(staff_client(REGISTRAR), SystemUser, task, [user], confirmed="1", reason="x")
    assert Change.objects.count() == changes
    assert ClientSecret.objects.get().revoked_at is None
