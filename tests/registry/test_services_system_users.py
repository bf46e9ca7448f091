"""Changes of system users and their secrets (contract 3 and 4)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from identity.demo.sample_logins import set_last_used
from taxpayers.credentials import Prefix, fault_of, hash_secret
from taxpayers.models import Change, Credential, SystemUser
from taxpayers.services import (
    Author,
    ServiceError,
    block_system_user,
    change_system_user,
    issue_secret,
    register_system_user,
    retire_credential,
    revoke_credential,
)
from tests.support.factories import CredentialFactory, SystemUserFactory, TaxpayerFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY, TICK = timedelta(days=1), timedelta(microseconds=1)
WHY: dict[str, Any] = {"by": Author("alice", "192.0.2.7"), "at": AT, "reason": "as she asked"}


def later(by: dict[str, Any], time: timedelta) -> dict[str, Any]:
    return {**by, "at": by["at"] + time}


@pytest.fixture
def owner() -> SystemUser:
    """A system user without a secret."""
    user: SystemUser = SystemUserFactory.create()
    return user


def live(owner: SystemUser, at: datetime) -> list[str]:
    return sorted(s.hint for s in owner.credentials.all() if s.is_live(at))


@pytest.mark.parametrize("environment", ["live", "test"])
def test_a_new_system_user_gets_credentials_of_this_environment(
    environment: Any, settings: Settings
) -> None:
    settings.ENVIRONMENT = environment
    taxpayer = TaxpayerFactory.create()
    issued = register_system_user(taxpayer=taxpayer, name="ERP", **WHY)
    pair = issued.credentials
    assert fault_of(pair.client_id, Prefix.CLIENT_ID, environment) is None
    assert fault_of(pair.client_secret, Prefix.CLIENT_SECRET, environment) is None
    user = SystemUser.objects.get(client_id=pair.client_id)
    assert (user.taxpayer, user.name, user.scopes) == (taxpayer, "ERP", "InvoicingAPI")
    assert (user.logins_per_minute, user.expires_at, user.blocked_at) == (12, None, None)


def test_a_secret_is_stored_as_a_hash_and_valid_for_a_year() -> None:
    issued = register_system_user(taxpayer=TaxpayerFactory.create(), name="ERP", **WHY)
    secret = Credential.objects.get()
    assert secret.lookup == hash_secret(issued.credentials.client_secret)
    assert issued.credentials.client_secret.endswith(secret.hint)
    assert (secret.created_at, secret.expires_at) == (AT, AT + 365 * DAY)
    assert (secret.revoked_at, secret.last_used_at) == (None, None)
    assert issued.credentials.client_secret not in f"{issued} {issued!r} {vars(issued.secret)}"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": " "}, "Give a name"),
        ({"scopes": []}, "at least one scope. Choose from: InvoicingAPI."),
        ({"scopes": ["InvoiceAPI"]}, "no scope InvoiceAPI. Choose from: InvoicingAPI."),
        ({"expires_at": AT}, "the system user would end 2026-03-01 20:00+08:00, in the past"),
        ({"credentials_expire_at": AT}, "the secret would end 2026-03-01 20:00+08:00, in the past"),
        ({"logins_per_minute": -1}, "Choose 0 (unlimited) to 1000000 logins per minute, not -1"),
        ({"logins_per_minute": 1_000_001}, "not 1000001"),
    ],
)
def test_an_invalid_system_user_is_not_registered(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ServiceError) as fault:
        register_system_user(
            **{"taxpayer": TaxpayerFactory.create(), "name": "ERP", **WHY, **wrong}
        )
    assert message in str(fault.value)
    assert not SystemUser.objects.exists()
    assert not Change.objects.exists()


def test_a_second_system_user_of_the_same_name_is_refused() -> None:
    taxpayer = TaxpayerFactory.create()
    first = register_system_user(taxpayer=taxpayer, name="ERP", **WHY)
    with pytest.raises(ServiceError, match=f"named ERP: {first.credentials.client_id}. Issue a"):
        register_system_user(taxpayer=taxpayer, name="ERP", **WHY)
    register_system_user(taxpayer=taxpayer, name="Another", **WHY)
    register_system_user(taxpayer=TaxpayerFactory.create(), name="ERP", **WHY)
    assert SystemUser.objects.count() == 3


def test_two_secrets_are_live_side_by_side(owner: SystemUser) -> None:
    old = CredentialFactory.create(system_user=owner, created_at=AT - DAY)
    new = issue_secret(system_user=owner, **WHY)
    assert (new.system_user, new.secret.system_user) == (owner, owner)
    assert new.credentials.client_id == owner.client_id
    assert live(owner, AT) == sorted([old.hint, new.secret.hint])
    old.refresh_from_db()
    assert old.expires_at == AT + 364 * DAY  # untouched
    revoke_credential(credential=old, **WHY)  # frees its slot
    for moment in (AT, AT - DAY):
        with pytest.raises(ServiceError, match="the old secret would end"):
            issue_secret(system_user=owner, retire_old_at=moment, **WHY)
    third = issue_secret(system_user=owner, retire_old_at=AT + DAY, **WHY)
    assert live(owner, AT + DAY) == sorted([new.secret.hint, third.secret.hint])
    assert live(owner, AT + DAY + TICK) == [third.secret.hint]


def test_a_third_live_secret_is_refused_with_what_to_do(owner: SystemUser) -> None:
    used = CredentialFactory.create(
        system_user=owner, created_at=AT - 9 * DAY, last_used_at=AT - DAY
    )
    unused = CredentialFactory.create(system_user=owner, slot=2, created_at=AT - 3 * DAY)
    with pytest.raises(ServiceError) as fault:
        issue_secret(system_user=owner, **WHY)
    message = str(fault.value)
    assert f"{owner.client_id} has two live secrets: " in message
    assert f"{used} (until 2027-02-20 20:00+08:00, last used 2026-02-28 20:00+08:00)" in message
    assert f"{unused} (until 2027-02-26 20:00+08:00, never used)" in message
    text = f"The new one, {unused}, is not used yet: the ERP system must change to it."
    assert f"{text} If it was lost, revoke it." in message
    assert owner.credentials.count() == 2
    for days, proposed in ((2, unused), (0.5, used)):  # the one unused for longer
        set_last_used(unused, AT - days * DAY)
        with pytest.raises(ServiceError, match=f"probably {proposed}"):
            issue_secret(system_user=owner, **WHY)


def test_an_expired_secret_frees_its_slot_from_the_microsecond_after(owner: SystemUser) -> None:
    facts = {"system_user": owner, "created_at": AT - 9 * DAY}
    CredentialFactory.create(**facts, slot=1)
    expiring = CredentialFactory.create(**facts, slot=2, expires_at=AT)
    with pytest.raises(ServiceError):
        issue_secret(system_user=owner, **WHY)
    issue_secret(system_user=owner, **later(WHY, TICK))
    expiring.refresh_from_db()
    assert expiring.slot is None
    assert expiring.revoked_at is None  # its login is told "expired", with the date


def test_a_secret_that_has_ended_is_revoked_and_not_retired(owner: SystemUser) -> None:
    secret = issue_secret(system_user=owner, **WHY).secret
    assert revoke_credential(credential=secret, **WHY).revoked_at == AT
    with pytest.raises(ServiceError, match="has already ended"):
        retire_credential(credential=secret, last_moment=AT + DAY, **WHY)
    other = issue_secret(system_user=owner, **WHY).secret
    with pytest.raises(ServiceError, match="in the past"):
        retire_credential(credential=other, last_moment=AT - TICK, **WHY)
    old = CredentialFactory.create(created_at=AT - 9 * DAY, expires_at=AT - DAY)
    assert revoke_credential(credential=old, **WHY).revoked_at == AT  # an expired one too


def test_the_end_of_the_last_secret_is_stored_with_each_change_of_one() -> None:
    def stored() -> datetime | None:
        (user,) = SystemUser.objects.all()
        return user.last_secret_ends_at

    taxpayer = TaxpayerFactory.create()
    first = register_system_user(
        taxpayer=taxpayer, name="ERP", credentials_expire_at=AT + 30 * DAY, **WHY
    )
    user = first.system_user
    assert stored() == AT + 30 * DAY
    second = issue_secret(
        system_user=user, expires_at=AT + 20 * DAY, retire_old_at=AT + 9 * DAY, **WHY
    )
    assert stored() == AT + 20 * DAY  # the old one ends before
    retire_credential(credential=second.secret, last_moment=AT + 5 * DAY, **WHY)
    assert stored() == AT + 9 * DAY
    revoke_credential(credential=first.secret, **WHY)
    assert stored() == AT + 5 * DAY
    revoke_credential(credential=second.secret, **WHY)
    assert stored() is None


def test_only_what_is_named_is_changed(owner: SystemUser, settings: Settings) -> None:
    settings.SCOPES = {"InvoicingAPI": {}, "ReportingAPI": {}}
    change_system_user(system_user=owner, name="New", **WHY)
    change_system_user(system_user=owner, logins_per_minute=600, **WHY)
    change_system_user(system_user=owner, scopes=["ReportingAPI"], **WHY)
    owner.refresh_from_db()
    assert (owner.name, owner.logins_per_minute, owner.scopes) == ("New", 600, "ReportingAPI")
    change_system_user(system_user=owner, name="New", scopes=["ReportingAPI"], **WHY)
    wrong: Any
    for wrong in ({"name": ""}, {"scopes": []}, {"scopes": ["X"]}, {"logins_per_minute": -1}):
        with pytest.raises(ServiceError):
            change_system_user(system_user=owner, **wrong, **WHY)
    assert Change.objects.count() == 3


def test_a_service_changes_the_row_as_it_is_now_and_not_as_it_was_read(owner: SystemUser) -> None:
    stale = SystemUser.objects.get(pk=owner.pk)
    block_system_user(system_user=owner, **WHY)
    change_system_user(system_user=stale, name="New", **WHY)
    owner.refresh_from_db()
    assert owner.blocked_at == AT
