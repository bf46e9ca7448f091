"""Services and constraints of the registry, and of system users and secrets (contract 3 and 4)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone
from pytest_django import Settings

from identity.demo.sample_logins import set_last_used
from taxpayers import services
from taxpayers.credentials import Prefix, fault_of, hash_secret
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import (
    Change,
    Credential,
    GrantedPermission,
    PermissionCode,
    SystemUser,
    Taxpayer,
)
from taxpayers.services import Author, ServiceError
from taxpayers.services.granted_permissions import codes_of
from tests.support import make
from tests.support.factories import SUBMIT, VIEW

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
        services.rename_taxpayer(taxpayer=make.taxpayer(), name=name, **WHY)


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
    row = make.intermediary(**facts)
    with pytest.raises(ServiceError, match=f"already an intermediary, {message}"):
        services.register_intermediary(taxpayer=row.taxpayer, **BY)


def test_an_intermediary_that_is_switched_off_and_on_keeps_its_end() -> None:
    row = make.intermediary(active_until=AT - DAY)
    for is_active in (False, True):
        row = services.set_intermediary_active(intermediary=row, is_active=is_active, **WHY)
        assert (row.is_active, row.active_until) == (is_active, AT - DAY)


@pytest.fixture
def pair() -> dict[str, Any]:
    return {"taxpayer": make.taxpayer(), "intermediary": make.intermediary()}


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
    intermediary = make.intermediary()
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
    untouched = make.permission(intermediary=pair["intermediary"])
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
    return make.permission(valid_from=NOW, **length)


def _again(new: Any, **facts: Any) -> Callable[[], Any]:
    return lambda: (new(**facts), new(**facts))


def _one_of(new: Any, name: str, **facts: Any) -> Callable[[], Any]:
    return lambda: new(**{name: getattr(new(), name)}, **facts)


def _shortened() -> Any:
    return GrantedPermission.objects.filter(pk=_permission().pk).update(valid_until=NOW - TICK)


def _third_live_secret(slot: int) -> Any:
    owner = make.system_user()
    for number in (1, 2, slot):
        make.credential(system_user=owner, slot=number)


def _stored_twice() -> Any:
    secret = make.credential()
    make.credential(system_user=secret.system_user, slot=2, lookup=secret.lookup)


REFUSED: list[tuple[str, Callable[[], Any]]] = [
    ("taxpayer_named_once", _again(make.taxpayer, tin="C1234567890", rob="")),
    ("taxpayer_named_once", _again(make.taxpayer, tin="C1234567890", rob="201901234567")),
    ("rob", lambda: make.taxpayer(rob=None)),
    ("taxpayer_has_tin", lambda: make.taxpayer(tin="")),
    ("intermediaries_taxpayer_id", _one_of(make.intermediary, "taxpayer")),
    ("permission_from_before_until", lambda: _permission(valid_until=NOW)),
    ("permission_from_before_until", lambda: _permission(valid_until=NOW - TICK)),
    ("permission_from_before_until", _shortened),
    ("client_id", _one_of(make.system_user, "client_id")),
    ("secret_two_live_at_most", lambda: _third_live_secret(1)),
    ("secret_two_live_at_most", lambda: _third_live_secret(2)),
    ("secret_slot_is_1_or_2", lambda: make.credential(slot=0)),
    ("secret_slot_is_1_or_2", lambda: make.credential(slot=3)),
    ("secret_revoked_leaves_its_slot", lambda: make.credential(slot=1, revoked_at=NOW)),
    ("secret_created_before_expiry", lambda: make.credential(created_at=NOW, expires_at=NOW)),
    ("secret_stored_once", _stored_twice),
    ("logins_per_minute", lambda: make.system_user(logins_per_minute=-1)),
    *(
        ("permission_code_form", partial(PermissionCode.objects.create, code=code))
        for code in ("", "Documents:Submit", "a b", "a:", ":a", "a::b", "dé", "a,b")
    ),
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


@pytest.mark.parametrize("at", [{}, {"blocked_at": NOW}])
@pytest.mark.parametrize("by", [{}, {"blocked_by": "alice"}])
@pytest.mark.parametrize("why", [{}, {"blocked_reason": "leaked"}])
def test_a_block_has_who_when_and_why_or_nothing(at: Any, by: Any, why: Any) -> None:
    given = at | by | why
    facts = {"blocked_by": "", "blocked_reason": ""} | given
    if len(given) in (0, 3):
        make.system_user(**facts)
    else:
        assert refuses(lambda: make.system_user(**facts), "system_user_block_has_who_and_why")


def test_what_others_depend_on_cannot_be_deleted() -> None:
    permission = make.permission()
    owner = make.system_user()
    for row in (permission.taxpayer, permission.intermediary, owner.taxpayer):
        with pytest.raises(ProtectedError):
            row.delete()


@pytest.fixture
def owner() -> SystemUser:
    user: SystemUser = make.system_user()
    return user


def live(owner: SystemUser, at: datetime) -> list[str]:
    return sorted(s.hint for s in owner.credentials.all() if s.is_live(at))


@pytest.mark.parametrize("environment", ["live", "test"])
def test_a_new_system_user_gets_credentials_of_this_environment_and_only_a_hash_is_stored(
    environment: Any, settings: Settings
) -> None:
    settings.ENVIRONMENT = environment
    taxpayer = make.taxpayer()
    issued = services.register_system_user(taxpayer=taxpayer, name="ERP", **WHY)
    pair = issued.credentials
    assert fault_of(pair.client_id, Prefix.CLIENT_ID, environment) is None
    assert fault_of(pair.client_secret, Prefix.CLIENT_SECRET, environment) is None
    user = SystemUser.objects.get(client_id=pair.client_id)
    assert (user.taxpayer, user.name, user.scopes) == (taxpayer, "ERP", "InvoicingAPI")
    assert (user.logins_per_minute, user.expires_at, user.blocked_at) == (12, None, None)
    secret = Credential.objects.get()
    assert secret.lookup == hash_secret(pair.client_secret)
    assert pair.client_secret.endswith(secret.hint)
    assert (secret.created_at, secret.expires_at) == (AT, AT + 365 * DAY)
    assert (secret.revoked_at, secret.last_used_at) == (None, None)
    assert pair.client_secret not in f"{issued} {issued!r} {vars(issued.secret)}"


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
        services.register_system_user(
            **{"taxpayer": make.taxpayer(), "name": "ERP", **WHY, **wrong}
        )
    assert message in str(fault.value)
    assert not SystemUser.objects.exists()
    assert not Change.objects.exists()


def test_a_second_system_user_of_the_same_name_is_refused() -> None:
    taxpayer = make.taxpayer()
    first = services.register_system_user(taxpayer=taxpayer, name="ERP", **WHY)
    with pytest.raises(ServiceError, match=f"named ERP: {first.credentials.client_id}. Issue a"):
        services.register_system_user(taxpayer=taxpayer, name="ERP", **WHY)
    services.register_system_user(taxpayer=taxpayer, name="Another", **WHY)
    services.register_system_user(taxpayer=make.taxpayer(), name="ERP", **WHY)
    assert SystemUser.objects.count() == 3


def test_two_secrets_are_live_side_by_side(owner: SystemUser) -> None:
    old = make.credential(system_user=owner, created_at=AT - DAY)
    new = services.issue_secret(system_user=owner, **WHY)
    assert (new.system_user, new.secret.system_user) == (owner, owner)
    assert new.credentials.client_id == owner.client_id
    assert live(owner, AT) == sorted([old.hint, new.secret.hint])
    old.refresh_from_db()
    assert old.expires_at == AT + 364 * DAY  # untouched
    services.revoke_credential(credential=old, **WHY)  # frees its slot
    for moment in (AT, AT - DAY):
        with pytest.raises(ServiceError, match="the old secret would end"):
            services.issue_secret(system_user=owner, retire_old_at=moment, **WHY)
    third = services.issue_secret(system_user=owner, retire_old_at=AT + DAY, **WHY)
    assert live(owner, AT + DAY) == sorted([new.secret.hint, third.secret.hint])
    assert live(owner, AT + DAY + TICK) == [third.secret.hint]


def test_a_third_live_secret_is_refused_with_what_to_do(owner: SystemUser) -> None:
    used = make.credential(system_user=owner, created_at=AT - 9 * DAY, last_used_at=AT - DAY)
    unused = make.credential(system_user=owner, slot=2, created_at=AT - 3 * DAY)
    with pytest.raises(ServiceError) as fault:
        services.issue_secret(system_user=owner, **WHY)
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
            services.issue_secret(system_user=owner, **WHY)


def test_an_expired_secret_frees_its_slot_from_the_microsecond_after(owner: SystemUser) -> None:
    facts = {"system_user": owner, "created_at": AT - 9 * DAY}
    make.credential(**facts, slot=1)
    expiring = make.credential(**facts, slot=2, expires_at=AT)
    with pytest.raises(ServiceError):
        services.issue_secret(system_user=owner, **WHY)
    services.issue_secret(system_user=owner, **WHY | {"at": AT + TICK})
    expiring.refresh_from_db()
    assert expiring.slot is None
    assert expiring.revoked_at is None  # its login is told "expired", with the date


def test_a_secret_that_has_ended_is_revoked_and_not_retired(owner: SystemUser) -> None:
    secret = services.issue_secret(system_user=owner, **WHY).secret
    assert services.revoke_credential(credential=secret, **WHY).revoked_at == AT
    with pytest.raises(ServiceError, match="has already ended"):
        services.retire_credential(credential=secret, last_moment=AT + DAY, **WHY)
    other = services.issue_secret(system_user=owner, **WHY).secret
    with pytest.raises(ServiceError, match="in the past"):
        services.retire_credential(credential=other, last_moment=AT - TICK, **WHY)
    old = make.credential(created_at=AT - 9 * DAY, expires_at=AT - DAY)
    assert services.revoke_credential(credential=old, **WHY).revoked_at == AT  # an expired one too


def test_the_end_of_the_last_secret_is_stored_with_each_change_of_one() -> None:
    def stored() -> datetime | None:
        (user,) = SystemUser.objects.all()
        return user.last_secret_ends_at

    taxpayer = make.taxpayer()
    first = services.register_system_user(
        taxpayer=taxpayer, name="ERP", credentials_expire_at=AT + 30 * DAY, **WHY
    )
    user = first.system_user
    assert stored() == AT + 30 * DAY
    second = services.issue_secret(
        system_user=user, expires_at=AT + 20 * DAY, retire_old_at=AT + 9 * DAY, **WHY
    )
    assert stored() == AT + 20 * DAY  # the old one ends before
    services.retire_credential(credential=second.secret, last_moment=AT + 5 * DAY, **WHY)
    assert stored() == AT + 9 * DAY
    services.revoke_credential(credential=first.secret, **WHY)
    assert stored() == AT + 5 * DAY
    services.revoke_credential(credential=second.secret, **WHY)
    assert stored() is None


def test_only_what_is_named_is_changed(owner: SystemUser, settings: Settings) -> None:
    settings.SCOPES = {"InvoicingAPI": {}, "ReportingAPI": {}}
    services.change_system_user(system_user=owner, name="New", **WHY)
    services.change_system_user(system_user=owner, logins_per_minute=600, **WHY)
    services.change_system_user(system_user=owner, scopes=["ReportingAPI"], **WHY)
    owner.refresh_from_db()
    assert (owner.name, owner.logins_per_minute, owner.scopes) == ("New", 600, "ReportingAPI")
    services.change_system_user(system_user=owner, name="New", scopes=["ReportingAPI"], **WHY)
    wrong: Any
    for wrong in ({"name": ""}, {"scopes": []}, {"scopes": ["X"]}, {"logins_per_minute": -1}):
        with pytest.raises(ServiceError):
            services.change_system_user(system_user=owner, **wrong, **WHY)
    assert Change.objects.count() == 3


def test_a_service_changes_the_row_as_it_is_now_and_not_as_it_was_read(owner: SystemUser) -> None:
    stale = SystemUser.objects.get(pk=owner.pk)
    services.block_system_user(system_user=owner, **WHY)
    services.change_system_user(system_user=stale, name="New", **WHY)
    owner.refresh_from_db()
    assert owner.blocked_at == AT
