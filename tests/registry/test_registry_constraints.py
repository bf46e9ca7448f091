"""What the database itself refuses, also to SQL by hand (contract 4)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from taxpayers.models import GrantedPermission, PermissionCode
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)

pytestmark = pytest.mark.django_db

NOW = timezone.now()
TICK = timedelta(microseconds=1)


def _permission(**length: Any) -> Any:
    return GrantedPermissionFactory.create(valid_from=NOW, **length)


def _again(factory: Any, **facts: Any) -> Callable[[], Any]:
    """Twice with the same values."""
    return lambda: (factory.create(**facts), factory.create(**facts))


def _one_of(factory: Any, name: str, **facts: Any) -> Callable[[], Any]:
    """Another row with the same value of that field."""
    return lambda: factory.create(**{name: getattr(factory.create(), name)}, **facts)


def _shortened() -> Any:
    rows = GrantedPermission.objects.filter(pk=_permission().pk)
    return rows.update(valid_until=NOW - TICK)


def _third_live_secret(slot: int) -> Any:
    owner = SystemUserFactory.create()
    for number in (1, 2, slot):
        CredentialFactory.create(system_user=owner, slot=number)


def _stored_twice() -> Any:
    secret = CredentialFactory.create()
    CredentialFactory.create(system_user=secret.system_user, slot=2, lookup=secret.lookup)


REFUSED: list[tuple[str, Callable[[], Any]]] = [
    ("taxpayer_named_once", _again(TaxpayerFactory, tin="C1234567890", rob="")),
    ("taxpayer_named_once", _again(TaxpayerFactory, tin="C1234567890", rob="201901234567")),
    ("rob", lambda: TaxpayerFactory.create(rob=None)),
    ("taxpayer_has_tin", lambda: TaxpayerFactory.create(tin="")),
    ("intermediaries_taxpayer_id", _one_of(IntermediaryFactory, "taxpayer")),
    ("permission_from_before_until", lambda: _permission(valid_until=NOW)),
    ("permission_from_before_until", lambda: _permission(valid_until=NOW - TICK)),
    ("permission_from_before_until", _shortened),
    ("client_id", _one_of(SystemUserFactory, "client_id")),
    ("secret_two_live_at_most", lambda: _third_live_secret(1)),
    ("secret_two_live_at_most", lambda: _third_live_secret(2)),
    ("secret_slot_is_1_or_2", lambda: CredentialFactory.create(slot=0)),
    ("secret_slot_is_1_or_2", lambda: CredentialFactory.create(slot=3)),
    ("secret_revoked_leaves_its_slot", lambda: CredentialFactory.create(slot=1, revoked_at=NOW)),
    (
        "secret_created_before_expiry",
        lambda: CredentialFactory.create(created_at=NOW, expires_at=NOW),
    ),
    ("secret_stored_once", _stored_twice),
    ("logins_per_minute", lambda: SystemUserFactory.create(logins_per_minute=-1)),
]


def refuses(write: Callable[[], object], constraint: str) -> bool:
    """Whether the write fails by that constraint; SQLite names columns where it is a unique one."""
    with pytest.raises(IntegrityError) as fault, transaction.atomic():
        write()
    message = str(fault.value)
    return constraint in message or message.startswith("UNIQUE constraint failed")


def test_the_database_refuses_what_breaks_a_rule() -> None:
    for constraint, write in REFUSED:
        assert refuses(write, constraint), constraint


@pytest.mark.parametrize("code", ["", "Documents:Submit", "a b", "a:", ":a", "a::b", "dé", "a,b"])
def test_a_permission_code_has_its_form(code: str) -> None:
    assert refuses(lambda: PermissionCode.objects.create(code=code), "permission_code_form")


@pytest.mark.parametrize("at", [{}, {"blocked_at": NOW}])
@pytest.mark.parametrize("by", [{}, {"blocked_by": "alice"}])
@pytest.mark.parametrize("why", [{}, {"blocked_reason": "leaked"}])
def test_a_block_has_who_when_and_why_or_nothing(at: Any, by: Any, why: Any) -> None:
    facts = at | by | why
    if len(facts) in (0, 3):
        SystemUserFactory.create(**facts)
    else:
        assert refuses(
            lambda: SystemUserFactory.create(**facts), "system_user_block_has_who_and_why"
        )


def test_what_others_depend_on_cannot_be_deleted() -> None:
    permission = GrantedPermissionFactory.create()
    owner = SystemUserFactory.create()
    for row in (permission.taxpayer, permission.intermediary, owner.taxpayer):
        with pytest.raises(ProtectedError):
            row.delete()
