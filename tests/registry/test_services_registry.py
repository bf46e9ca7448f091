"""Services and constraints of taxpayers, intermediaries and permissions (contract 3 and 4)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from taxpayers import services
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, PermissionCode, Taxpayer
from taxpayers.services import Author, ServiceError
from taxpayers.services.granted_permissions import codes_of
from tests.support.factories import (
    SUBMIT,
    VIEW,
    CredentialFactory,
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY, TICK = timedelta(days=1), timedelta(microseconds=1)
BY: dict[str, Any] = {"by": Author("alice", "192.0.2.7"), "at": AT}
WHY: dict[str, Any] = {**BY, "reason": "as she asked"}
ID = TaxpayerId("C1234567890", "201901234567")


def test_a_registered_taxpayer_is_not_registered_under_another_name() -> None:
    row = services.register_taxpayer(taxpayer=ID, name=" Acme Sdn Bhd ", **BY)
    assert (row.identifier, row.name, row.created_at) == (ID, "Acme Sdn Bhd", AT)
    with pytest.raises(ServiceError, match=r"C1234567890:201901234567 .* under the name Acme Sdn"):
        services.register_taxpayer(taxpayer=ID, name="Other", **BY)
    assert Taxpayer.objects.get().name == "Acme Sdn Bhd"


@pytest.mark.parametrize("name", ["", " \t", "a" * 256, "two\nlines", "nul\x00"])
def test_a_name_is_one_line_of_text(name: str) -> None:
    with pytest.raises(ServiceError, match="a name"):
        services.register_taxpayer(taxpayer=ID, name=name, **BY)
    with pytest.raises(ServiceError, match="a name"):
        services.rename_taxpayer(taxpayer=TaxpayerFactory.create(), name=name, **WHY)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"is_active": False}, "but not active"),
        ({"active_until": AT + 2 * DAY}, r"until 2026-03-03 20:00\+08:00"),
    ],
)
def test_an_inactive_or_ending_intermediary_is_left_as_it_is(
    facts: dict[str, Any], message: str
) -> None:
    row = IntermediaryFactory.create(**facts)
    with pytest.raises(ServiceError, match=f"already an intermediary, {message}"):
        services.register_intermediary(taxpayer=row.taxpayer, **BY)


def test_an_intermediary_that_is_switched_off_and_on_keeps_its_end() -> None:
    row = IntermediaryFactory.create(active_until=AT - DAY)
    for is_active in (False, True):
        row = services.set_intermediary_active(intermediary=row, is_active=is_active, **WHY)
        assert (row.is_active, row.active_until) == (is_active, AT - DAY)


@pytest.fixture
def pair() -> dict[str, Any]:
    return {"taxpayer": TaxpayerFactory.create(), "intermediary": IntermediaryFactory.create()}


def test_a_permission_is_valid_from_now_on_by_default(pair: dict[str, Any]) -> None:
    row = services.grant_permission(**pair, codes=[VIEW, SUBMIT, VIEW], **BY)
    assert (row.valid_from, row.valid_until, row.revoked_at) == (AT, None, None)
    assert codes_of(row) == [SUBMIT, VIEW]
    later = services.grant_permission(
        **pair, codes=[VIEW], valid_from=AT + DAY, valid_until=AT + 2 * DAY, **BY
    )
    assert (later.valid_from, later.valid_until) == (AT + DAY, AT + 2 * DAY)


def test_granting_the_same_again_creates_nothing_before_it_is_revoked(pair: dict[str, Any]) -> None:
    row = services.grant_permission(**pair, codes=[VIEW, SUBMIT], **BY)
    tomorrow = {**BY, "at": AT + DAY}
    assert services.grant_permission(**pair, codes=[SUBMIT, VIEW], **tomorrow) == row
    other: dict[str, Any]
    for other in ({"codes": [VIEW]}, {"valid_until": AT + DAY}, {"valid_from": AT - DAY}):
        assert services.grant_permission(**pair, **{"codes": [VIEW, SUBMIT]} | other, **BY) != row
    services.revoke_permission(permission=row, **WHY | {"at": AT + DAY})
    assert services.grant_permission(**pair, codes=[VIEW, SUBMIT], **BY) != row


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
        services.grant_permission(**pair, **wrong, **BY)
    assert message in str(fault.value)
    assert not GrantedPermission.objects.exists()


def test_an_intermediary_is_not_granted_a_permission_by_itself() -> None:
    intermediary = IntermediaryFactory.create()
    with pytest.raises(ServiceError, match="needs no permission to act for itself"):
        services.grant_permission(
            taxpayer=intermediary.taxpayer, intermediary=intermediary, codes=[VIEW], **BY
        )


CANCEL = "documents:cancel"
# What was granted, with its first and last moment; what is revoked on the next day; of how many
# permissions; and the codes in force with the first and last moment of each permission then.
REVOKED: dict[str, tuple[list[Any], list[str], int, list[Any]]] = {
    "the codes granted with it stay, without a gap": (
        *([([VIEW, SUBMIT], AT, AT + 9 * DAY)], [VIEW], 1),
        [([SUBMIT], AT + DAY, AT + 9 * DAY)],
    ),
    "the rest of one that is still to come does not start now": (
        *([([VIEW, SUBMIT], AT + 9 * DAY, None)], [VIEW], 1),
        [([SUBMIT], AT + 9 * DAY, None)],
    ),
    "in every permission that has it": (
        [([VIEW, SUBMIT], AT, None), ([VIEW], AT + 2 * DAY, None), ([CANCEL], AT, None)],
        *([VIEW], 2),
        [([CANCEL], AT, None), ([SUBMIT], AT + DAY, None)],
    ),
    "without a code all": ([([VIEW, SUBMIT], AT, None), ([CANCEL], AT + DAY, None)], [], 2, []),
    "what ended by itself is not revoked": (
        *([([VIEW], AT, AT + DAY - TICK)], [VIEW], 0),
        [([VIEW], AT, AT + DAY - TICK)],
    ),
}


@pytest.mark.parametrize("name", REVOKED)
def test_codes_are_revoked_once(pair: dict[str, Any], name: str) -> None:
    granted, codes, count, left = REVOKED[name]
    for given, begins, until in granted:
        services.grant_permission(**pair, codes=given, valid_from=begins, valid_until=until, **BY)
    untouched = GrantedPermissionFactory.create(intermediary=pair["intermediary"])
    for days, expected in ((1, count), (2, 0)):
        revoked = services.revoke_codes(**pair, codes=codes, **WHY | {"at": AT + days * DAY})
        assert len(revoked) == expected
    rest = GrantedPermission.objects.filter(revoked_at=None).exclude(pk=untouched.pk)
    assert [(codes_of(row), row.valid_from, row.valid_until) for row in rest.order_by("pk")] == left


@pytest.mark.parametrize(
    ("codes", "message"), [([], "anything"), ([SUBMIT], SUBMIT), (["x:y"], "x:y")]
)
def test_a_code_that_was_never_granted_cannot_be_revoked(
    pair: dict[str, Any], codes: list[str], message: str
) -> None:
    if codes:
        services.grant_permission(**pair, codes=[VIEW], **BY)
    with pytest.raises(ServiceError, match=f"has never granted {message} to"):
        services.revoke_codes(**pair, codes=codes, **WHY)


def test_a_code_is_added_and_its_description_changed() -> None:
    for text in ("Read reports", "Read all reports"):
        services.set_permission_code(code="reports:read", description=text, **BY)
        assert PermissionCode.objects.get(code="reports:read").description == text
    for code in ("", "Reports:Read", "a b", "a:", "a\n", "a" * 65):
        with pytest.raises(ServiceError, match="for example documents:submit"):
            services.set_permission_code(code=code, description="?", **BY)


NOW = timezone.now()


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
