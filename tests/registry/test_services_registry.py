"""Changes of taxpayers, intermediaries and permissions (contract 4)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, GrantedPermission, Intermediary, PermissionCode, Taxpayer
from taxpayers.services import (
    Author,
    ServiceError,
    grant_permission,
    register_intermediary,
    register_taxpayer,
    rename_taxpayer,
    revoke_codes,
    revoke_permission,
    set_intermediary_active,
    set_permission_code,
)
from taxpayers.services.granted_permissions import codes_of
from tests.support.factories import (
    SUBMIT,
    VIEW,
    GrantedPermissionFactory,
    IntermediaryFactory,
    TaxpayerFactory,
)

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY, TICK = timedelta(days=1), timedelta(microseconds=1)
BY: dict[str, Any] = {"by": Author("alice", "192.0.2.7"), "at": AT}
WHY: dict[str, Any] = {**BY, "reason": "as she asked"}
ID = TaxpayerId("C1234567890", "201901234567")


# --- Taxpayers ----------------------------------------------------------------------------------


def test_registering_a_taxpayer_again_changes_nothing() -> None:
    first = register_taxpayer(taxpayer=ID, name=" Acme Sdn Bhd ", **BY)
    again = register_taxpayer(taxpayer=ID, name="Acme Sdn Bhd", **BY)
    assert first == again
    assert (first.identifier, first.name, first.is_active) == (ID, "Acme Sdn Bhd", True)
    assert first.created_at == AT
    with pytest.raises(ServiceError, match=r"C1234567890:201901234567 .* under the name Acme Sdn"):
        register_taxpayer(taxpayer=ID, name="Other", **BY)
    assert Taxpayer.objects.get().name == "Acme Sdn Bhd"
    assert Change.objects.count() == 1


@pytest.mark.parametrize("name", ["", " \t", "a" * 256, "two\nlines", "nul\x00"])
def test_a_name_is_one_line_of_text(name: str) -> None:
    with pytest.raises(ServiceError, match="a name"):
        register_taxpayer(taxpayer=ID, name=name, **BY)
    with pytest.raises(ServiceError, match="a name"):
        rename_taxpayer(taxpayer=TaxpayerFactory.create(), name=name, **WHY)


def test_a_deleted_record_cannot_be_changed() -> None:
    row = TaxpayerFactory.create(name="Gone")
    Taxpayer.objects.all().delete()
    with pytest.raises(ServiceError, match=r"Gone .* no longer exists"):
        rename_taxpayer(taxpayer=row, name="New", **WHY)


# --- Intermediaries -----------------------------------------------------------------------------


@pytest.mark.parametrize("until", [None, AT + TICK, AT + 365 * DAY])
def test_a_taxpayer_becomes_an_intermediary_once(until: datetime | None) -> None:
    taxpayer = TaxpayerFactory.create()
    row = register_intermediary(taxpayer=taxpayer, until=until, **BY)
    assert register_intermediary(taxpayer=taxpayer, until=until, **BY) == row
    assert (row.taxpayer, row.is_active, row.active_until) == (taxpayer, True, until)
    assert Change.objects.count() == 1


@pytest.mark.parametrize("until", [AT, AT - DAY])
def test_an_intermediary_is_not_registered_with_an_end_in_the_past(until: datetime) -> None:
    with pytest.raises(ServiceError, match="in the past"):
        register_intermediary(taxpayer=TaxpayerFactory.create(), until=until, **BY)
    assert not Intermediary.objects.exists()


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"is_active": False}, "but not active"),
        ({"active_until": AT + 2 * DAY}, "until 2026-03-03 20:00"),
    ],
)
def test_an_inactive_or_ending_intermediary_is_left_as_it_is(
    facts: dict[str, Any], message: str
) -> None:
    row = IntermediaryFactory.create(**facts)
    with pytest.raises(ServiceError, match=f"already an intermediary, {message}"):
        register_intermediary(taxpayer=row.taxpayer, **BY)


def test_an_intermediary_is_switched_off_and_on_and_extended() -> None:
    row = IntermediaryFactory.create(active_until=AT - DAY)
    off = set_intermediary_active(intermediary=row, is_active=False, until=AT - DAY, **WHY)
    assert (off.is_active, off.active_until) == (False, AT - DAY)
    on = set_intermediary_active(intermediary=row, is_active=True, until=AT + DAY, **WHY)
    assert (on.is_active, on.active_until) == (True, AT + DAY)
    assert (
        set_intermediary_active(intermediary=row, is_active=True, until=None, **WHY).active_until
        is None
    )
    with pytest.raises(ServiceError, match="in the past"):
        set_intermediary_active(intermediary=row, is_active=True, until=AT - TICK, **WHY)


# --- Permissions --------------------------------------------------------------------------------


@pytest.fixture
def pair() -> dict[str, Any]:
    return {"taxpayer": TaxpayerFactory.create(), "intermediary": IntermediaryFactory.create()}


def codes_in_force(at: datetime) -> list[str]:
    rows = GrantedPermission.objects.filter(valid_from__lte=at)
    return sorted(
        code
        for row in rows
        if row.revoked_at is None and (row.valid_until is None or row.valid_until >= at)
        for code in codes_of(row)
    )


def test_a_permission_is_valid_from_now_on_by_default(pair: dict[str, Any]) -> None:
    row = grant_permission(**pair, codes=[VIEW, SUBMIT, VIEW], **BY)
    assert (row.valid_from, row.valid_until, row.revoked_at) == (AT, None, None)
    assert codes_of(row) == [SUBMIT, VIEW]
    later = grant_permission(
        **pair, codes=[VIEW], valid_from=AT + DAY, valid_until=AT + 2 * DAY, **BY
    )
    assert (later.valid_from, later.valid_until) == (AT + DAY, AT + 2 * DAY)


def test_granting_the_same_again_creates_nothing_before_it_is_revoked(pair: dict[str, Any]) -> None:
    row = grant_permission(**pair, codes=[VIEW, SUBMIT], **BY)
    tomorrow = {**BY, "at": AT + DAY}
    assert grant_permission(**pair, codes=[SUBMIT, VIEW], **tomorrow) == row
    assert Change.objects.count() == 1
    other: dict[str, Any]
    for other in ({"codes": [VIEW]}, {"valid_until": AT + DAY}, {"valid_from": AT - DAY}):
        assert grant_permission(**pair, **{"codes": [VIEW, SUBMIT]} | other, **BY) != row
    changes = Change.objects.count()
    for days in (1, 2):
        revoked = revoke_permission(permission=row, **WHY | {"at": AT + days * DAY})
        assert revoked.revoked_at == AT + DAY
    assert Change.objects.count() == changes + 1
    assert grant_permission(**pair, codes=[VIEW, SUBMIT], **BY) != row


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"codes": []},
            "at least one permission code. Choose from: documents:cancel, documents:rej",
        ),
        (
            {"codes": [VIEW, "documents:veiw", "x"]},
            "no permission code documents:veiw, x. Choose fr",
        ),
        ({"codes": [VIEW], "valid_from": AT + DAY, "valid_until": AT + DAY}, "before it begins"),
        ({"codes": [VIEW], "valid_from": AT + DAY, "valid_until": AT + TICK}, "before it begins"),
        ({"codes": [VIEW], "valid_until": AT}, "in the past"),
        ({"codes": [VIEW], "valid_from": AT - 2 * DAY, "valid_until": AT - DAY}, "in the past"),
    ],
)
def test_an_invalid_permission_is_not_granted(
    pair: dict[str, Any], wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(ServiceError) as fault:
        grant_permission(**pair, **wrong, **BY)
    assert message in str(fault.value)
    assert not GrantedPermission.objects.exists()


def test_an_intermediary_is_not_granted_a_permission_by_itself() -> None:
    intermediary = IntermediaryFactory.create()
    with pytest.raises(ServiceError, match="needs no permission to act for itself"):
        grant_permission(
            taxpayer=intermediary.taxpayer, intermediary=intermediary, codes=[VIEW], **BY
        )


def test_a_code_is_revoked_and_the_codes_granted_with_it_stay(pair: dict[str, Any]) -> None:
    grant_permission(**pair, codes=[VIEW, SUBMIT], valid_until=AT + 9 * DAY, **BY)
    at = AT + DAY
    assert len(revoke_codes(**pair, codes=[VIEW], **{**WHY, "at": at})) == 1
    assert codes_in_force(at) == [SUBMIT]  # without a gap
    rest = GrantedPermission.objects.get(revoked_at=None)
    assert (rest.valid_from, rest.valid_until) == (at, AT + 9 * DAY)
    assert revoke_codes(**pair, codes=[VIEW], **{**WHY, "at": at + DAY}) == []


def test_the_rest_of_a_permission_that_is_still_to_come_does_not_start_now(
    pair: dict[str, Any],
) -> None:
    begins = AT + 9 * DAY
    grant_permission(**pair, codes=[VIEW, SUBMIT], valid_from=begins, **BY)
    assert len(revoke_codes(**pair, codes=[VIEW], **WHY)) == 1
    rest = GrantedPermission.objects.get(revoked_at=None)
    assert (rest.valid_from, rest.valid_until) == (begins, None)
    assert codes_in_force(begins - TICK) == []
    assert codes_in_force(begins) == [SUBMIT]


def test_a_code_is_revoked_in_every_permission_that_has_it(pair: dict[str, Any]) -> None:
    grant_permission(**pair, codes=[VIEW, SUBMIT], **BY)
    grant_permission(**pair, codes=[VIEW], valid_from=AT + DAY, **BY)
    grant_permission(**pair, codes=["documents:cancel"], **BY)
    assert len(revoke_codes(**pair, codes=[VIEW], **WHY)) == 2
    assert codes_in_force(AT + 2 * DAY) == ["documents:cancel", SUBMIT]


def test_without_a_code_all_permissions_between_the_two_are_revoked(pair: dict[str, Any]) -> None:
    grant_permission(**pair, codes=[VIEW, SUBMIT], **BY)
    grant_permission(**pair, codes=["documents:cancel"], valid_from=AT + DAY, **BY)
    untouched = GrantedPermissionFactory.create(intermediary=pair["intermediary"])
    assert len(revoke_codes(**pair, **WHY)) == 2
    assert list(GrantedPermission.objects.filter(revoked_at=None)) == [untouched]
    assert revoke_codes(**pair, **WHY) == []


def test_a_permission_that_ended_by_itself_is_not_revoked_afterwards(pair: dict[str, Any]) -> None:
    grant_permission(**pair, codes=[VIEW], valid_until=AT + DAY, **BY)
    assert revoke_codes(**pair, codes=[VIEW], **{**WHY, "at": AT + DAY + TICK}) == []


@pytest.mark.parametrize(
    ("codes", "message"), [([], "anything"), ([SUBMIT], SUBMIT), (["x:y"], "x:y")]
)
def test_a_code_that_was_never_granted_cannot_be_revoked(
    pair: dict[str, Any], codes: list[str], message: str
) -> None:
    if codes:
        grant_permission(**pair, codes=[VIEW], **BY)
    with pytest.raises(ServiceError, match=f"has never granted {message} to"):
        revoke_codes(**pair, codes=codes, **WHY)


# --- Permission codes ---------------------------------------------------------------------------


def test_a_code_is_added_and_its_description_changed() -> None:
    set_permission_code(code="reports:read", description="Read reports", **BY)
    set_permission_code(code="reports:read", description="Read reports", **BY)
    assert Change.objects.count() == 1
    set_permission_code(code="reports:read", description="Read all reports", **BY)
    assert PermissionCode.objects.get(code="reports:read").description == "Read all reports"
    assert Change.objects.count() == 2
    for code in ("", "Reports:Read", "a b", "a:", "a\n", "a" * 65):
        with pytest.raises(ServiceError, match="for example documents:submit"):
            set_permission_code(code=code, description="?", **BY)
