"""Several revoked at once: what happens to each is shown before it is done."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from taxpayers.models import Change, Credential, GrantedPermission, SystemUser
from tests.staff.test_lists import act_on
from tests.support.erp import new_erp
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    SystemUserFactory,
)
from tests.support.staff import errors_of, text_of

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def live() -> set[Credential]:
    return set(Credential.objects.filter(revoked_at=None))


def test_every_secret_of_several_is_revoked_and_none_can_log_in(officer: Client) -> None:
    leaked, other = new_erp(), new_erp()
    users = list(SystemUser.objects.filter(client_id=leaked.client_id))
    second = CredentialFactory.create(system_user=users[0], slot=2)
    without = SystemUserFactory.create()
    shown = text_of(act_on(officer, SystemUser, "revoke_secrets", [*users, without], which="every"))
    assert f"…{leaked.client_secret[-4:]}" in shown
    assert str(second) in shown
    assert "Nothing else is valid: it cannot log in before it gets a new one." in shown
    assert "Not changed It has no valid secret." in shown
    form = {"confirmed": "1", "which": "every", "reason": "leaked at the maker"}
    act_on(officer, SystemUser, "revoke_secrets", [*users, without], **form)
    assert [secret.system_user.client_id for secret in live()] == [other.client_id]
    changes = Change.objects.filter(reason="leaked at the maker")
    assert changes.count() == 2
    assert changes.values("task_id").distinct().count() == 1


@pytest.fixture
def rotated(db: None) -> tuple[SystemUser, Credential, Credential]:
    """A system user with a secret that is no longer used, and the one that is used instead."""
    at = timezone.now()
    old = CredentialFactory.create(created_at=at - 50 * DAY, last_used_at=at - 20 * DAY)
    new = CredentialFactory.create(
        system_user=old.system_user, slot=2, created_at=at - 19 * DAY, last_used_at=at
    )
    return SystemUser.objects.get(), old, new


def test_of_several_only_the_secrets_that_are_not_in_use_are_revoked(
    officer: Client, rotated: tuple[SystemUser, Credential, Credential]
) -> None:
    user, old, new = rotated
    only = CredentialFactory.create(last_used_at=timezone.now())
    users = [user, only.system_user]
    page = act_on(officer, SystemUser, "revoke_secrets", users)
    shown = text_of(page)
    assert f"Revoked: secret {old}. Still valid: secret {new}. Last login:" in shown
    assert "Not changed None of them is safe to revoke." in shown
    form = {"confirmed": "1", "which": "unused", "reason": "rotation is done"}
    done = text_of(act_on(officer, SystemUser, "revoke_secrets", users, **form))
    assert "1 done. 1 was not changed." in done
    assert live() == {new, only}


def test_which_secrets_must_be_clear(
    officer: Client, rotated: tuple[SystemUser, Credential, Credential]
) -> None:
    form = {"confirmed": "1", "reason": "x"}
    page = act_on(officer, SystemUser, "revoke_secrets", [rotated[0]], **form)
    assert "This field is required." in errors_of(page)
    shown = text_of(act_on(officer, SystemUser, "revoke_secrets", [rotated[0]], which="every"))
    assert "Nothing else is valid: it cannot log in before it gets a new one." in shown
    assert f"In use: secret {rotated[2]}." in shown
    assert live() == set(rotated[1:])


def test_several_permissions_are_revoked(registrar: Client) -> None:
    *valid, over = GrantedPermissionFactory.create_batch(3)
    GrantedPermission.objects.filter(pk=over.pk).update(revoked_at=timezone.now())
    rows = [*valid, over]
    shown = text_of(act_on(registrar, GrantedPermission, "revoke_permission", rows))
    assert "Not changed It is already revoked." in shown
    form = {"confirmed": "1", "reason": "contract ended"}
    done = act_on(registrar, GrantedPermission, "revoke_permission", rows, **form)
    assert "2 done. 1 was not changed." in text_of(done)
    assert not GrantedPermission.objects.filter(revoked_at=None).exists()
