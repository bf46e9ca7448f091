"""What the database itself refuses, also to SQL by hand (contract 4)."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from taxpayers.models import GrantedPermission, PermissionCode, Taxpayer
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


def refuses(write: Callable[[], object], constraint: str) -> bool:
    """Whether the write fails by that constraint; SQLite names columns where it is a unique one."""
    with pytest.raises(IntegrityError) as fault, transaction.atomic():
        write()
    message = str(fault.value)
    return constraint in message or message.startswith("UNIQUE constraint failed")


@pytest.mark.parametrize("rob", ["", "201901234567"])
def test_a_taxpayer_is_unique_also_without_a_rob_number(rob: str) -> None:
    TaxpayerFactory.create(tin="C1234567890", rob=rob)
    assert refuses(
        lambda: TaxpayerFactory.create(tin="C1234567890", rob=rob), "taxpayer_named_once"
    )


def test_a_tin_may_occur_alone_and_with_several_rob_numbers() -> None:
    for rob in ("", "201901234567", "201901234568"):
        TaxpayerFactory.create(tin="C1234567890", rob=rob)
    assert Taxpayer.objects.filter(tin="C1234567890").count() == 3


def test_none_is_no_rob_number() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        TaxpayerFactory.create(rob=None)


def test_a_taxpayer_has_a_tin() -> None:
    assert refuses(lambda: TaxpayerFactory.create(tin=""), "taxpayer_has_tin")


def test_a_taxpayer_is_an_intermediary_once() -> None:
    taxpayer = TaxpayerFactory.create()
    IntermediaryFactory.create(taxpayer=taxpayer)
    assert refuses(
        lambda: IntermediaryFactory.create(taxpayer=taxpayer), "intermediaries_taxpayer_id"
    )


@pytest.mark.parametrize("length", [timedelta(0), -TICK, timedelta(days=-1)])
def test_a_permission_begins_before_it_ends(length: timedelta) -> None:
    assert refuses(
        lambda: GrantedPermissionFactory.create(valid_from=NOW, valid_until=NOW + length),
        "permission_from_before_until",
    )


def test_a_permission_may_last_a_microsecond_or_for_ever() -> None:
    GrantedPermissionFactory.create(valid_from=NOW, valid_until=NOW + TICK)
    GrantedPermissionFactory.create(valid_from=NOW, valid_until=None)
    assert GrantedPermission.objects.count() == 2


def test_a_permission_cannot_be_shortened_below_its_beginning_either() -> None:
    permission = GrantedPermissionFactory.create(valid_from=NOW)
    one = GrantedPermission.objects.filter(pk=permission.pk)
    assert refuses(lambda: one.update(valid_until=NOW - TICK), "permission_from_before_until")


@pytest.mark.parametrize("code", ["", "Documents:Submit", "a b", "a:", ":a", "a::b", "dé", "a,b"])
def test_a_permission_code_has_its_form(code: str) -> None:
    assert refuses(lambda: PermissionCode.objects.create(code=code), "permission_code_form")


def test_the_contracts_permission_codes_exist_from_the_start() -> None:
    assert set(PermissionCode.objects.values_list("code", flat=True)) == {
        "documents:submit",
        "documents:view",
        "documents:cancel",
        "documents:reject",
    }


def test_a_client_id_is_given_once() -> None:
    owner = SystemUserFactory.create()
    assert refuses(lambda: SystemUserFactory.create(client_id=owner.client_id), "client_id")


def test_a_third_live_secret_has_no_slot() -> None:
    owner = SystemUserFactory.create()
    CredentialFactory.create(system_user=owner, slot=1)
    CredentialFactory.create(system_user=owner, slot=2)
    for slot in (1, 2):
        assert refuses(
            lambda slot=slot: CredentialFactory.create(system_user=owner, slot=slot),  # type: ignore[misc]
            "secret_two_live_at_most",
        )


def test_secrets_without_a_slot_are_not_limited() -> None:
    owner = SystemUserFactory.create()
    for _ in range(3):
        CredentialFactory.create(system_user=owner, slot=None)
    assert owner.credentials.count() == 3


@pytest.mark.parametrize("slot", [0, 3])
def test_there_is_no_third_slot(slot: int) -> None:
    assert refuses(lambda: CredentialFactory.create(slot=slot), "secret_slot_is_1_or_2")


def test_a_revoked_secret_has_no_slot() -> None:
    assert refuses(
        lambda: CredentialFactory.create(slot=1, revoked_at=NOW), "secret_revoked_leaves_its_slot"
    )


def test_a_secret_expires_after_it_was_created() -> None:
    assert refuses(
        lambda: CredentialFactory.create(created_at=NOW, expires_at=NOW),
        "secret_created_before_expiry",
    )


def test_a_secret_is_stored_once() -> None:
    secret = CredentialFactory.create()
    assert refuses(
        lambda: CredentialFactory.create(
            system_user=secret.system_user, slot=2, lookup=secret.lookup
        ),
        "secret_stored_once",
    )


@pytest.mark.parametrize(
    "facts",
    [
        {"blocked_at": NOW},
        {"blocked_at": NOW, "blocked_by": "alice"},
        {"blocked_at": NOW, "blocked_reason": "leaked"},
        {"blocked_by": "alice"},
        {"blocked_reason": "leaked"},
    ],
)
def test_a_block_has_who_when_and_why_or_nothing(facts: dict[str, object]) -> None:
    assert refuses(lambda: SystemUserFactory.create(**facts), "system_user_block_has_who_and_why")


def test_a_number_of_logins_is_not_negative() -> None:
    assert refuses(lambda: SystemUserFactory.create(logins_per_minute=-1), "logins_per_minute")


def test_what_others_depend_on_cannot_be_deleted() -> None:
    permission = GrantedPermissionFactory.create()
    owner = SystemUserFactory.create()
    for row in (permission.taxpayer, permission.intermediary, owner.taxpayer):
        with pytest.raises(ProtectedError):
            row.delete()
