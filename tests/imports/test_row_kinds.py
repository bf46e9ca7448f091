"""Intermediaries, permissions and system users from a file: read, registered, all or none."""

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taxpayers.models import Change, Credential, GrantedPermission, Intermediary, SystemUser
from taxpayers.services import (
    IMPORT_KINDS,
    Author,
    BadRowsError,
    ImportResult,
    ServiceError,
    import_kinds,
    row_import,
)
from tests.registry.other_import import inserts
from tests.support import make
from tests.support.factories import SUBMIT, VIEW

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
BY = Author("alice")
TIN, AGENT, HUB = "C0000000001", "C0000000002", "C0000000003"
LAST = datetime(2027, 12, 31, 15, 59, 59, 999999, tzinfo=UTC)  # of 2027 in Kuala Lumpur


def read(kind: str, *rows: str) -> Any:
    return IMPORT_KINDS[kind].read(io.BytesIO("\n".join(rows).encode()))


def run(kind: str, *rows: str, at: datetime = AT) -> ImportResult:
    return IMPORT_KINDS[kind].run(parsed=read(kind, *rows), source="x.csv", by=BY, at=at)


def preview(kind: str, *rows: str) -> Any:
    return IMPORT_KINDS[kind].preview(parsed=read(kind, *rows), at=AT)


def bad_rows(kind: str, *rows: str) -> list[str]:
    return [str(row) for row in preview(kind, *rows).bad_rows]


@pytest.fixture
def pair(db: None) -> tuple[Any, Any]:
    return make.taxpayer(tin=TIN), make.intermediary(taxpayer__tin=AGENT)


LAST_DAY = "2027-12-31"
# Of each kind: a file, and of each row what is registered then.
FILES: dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]] = {
    "intermediaries": (
        ("tin,rob,active_until", f"{TIN},,{LAST_DAY}", f"{HUB},R-123,"),
        [(TIN, True, LAST), (HUB, True, None)],
    ),
    "permissions": (
        (
            "taxpayer,intermediary,codes,valid_from,valid_until",
            f"{TIN},{AGENT},{SUBMIT} {VIEW},,{LAST_DAY}",
            f"{TIN},{AGENT},{VIEW},2026-05-01,",
        ),
        [({SUBMIT, VIEW}, AT, LAST), ({VIEW}, datetime(2026, 4, 30, 16, tzinfo=UTC), None)],
    ),
    "system_users": (
        (
            "taxpayer,name,scopes,logins_per_minute,expires_at",
            *(f"{TIN},ERP,,,", f"{AGENT},Hub,InvoicingAPI,600,{LAST_DAY}"),
        ),
        [(TIN, "InvoicingAPI", 12, None), (AGENT, "InvoicingAPI", 600, LAST)],
    ),
}
REGISTERED: dict[str, Callable[[], list[tuple[Any, ...]]]] = {
    "intermediaries": lambda: [
        (row.taxpayer.tin, row.is_active, row.active_until)
        for row in Intermediary.objects.exclude(taxpayer__tin=AGENT).order_by("taxpayer__tin")
    ],
    "permissions": lambda: [
        ({code.pk for code in row.codes.all()}, row.valid_from, row.valid_until)
        for row in GrantedPermission.objects.order_by("pk")
    ],
    "system_users": lambda: [
        (row.taxpayer.tin, row.scopes, row.logins_per_minute, row.expires_at)
        for row in SystemUser.objects.order_by("pk")
    ],
}


@pytest.mark.parametrize("kind", FILES)
def test_each_kind_is_registered_with_its_values_once(kind: str, pair: tuple[Any, Any]) -> None:
    make.taxpayer(tin=HUB, rob="R-123")
    rows, expected = FILES[kind]
    assert run(kind, *rows) == ImportResult(registered=2, unchanged=0)
    assert run(kind, *rows, at=AT + DAY) == ImportResult(registered=0, unchanged=2)
    assert REGISTERED[kind]() == expected
    assert not Credential.objects.exists()


def test_a_first_day_in_the_past_means_now(pair: tuple[Any, Any]) -> None:
    rows = ("taxpayer,intermediary,codes,valid_from", f"{TIN},{AGENT},{VIEW},2020-01-01")
    run("permissions", *rows)
    assert GrantedPermission.objects.get().valid_from == AT


def test_the_history_names_the_file_of_each_row_and_shows_one_task(pair: tuple[Any, Any]) -> None:
    run("system_users", "taxpayer,name", f"{TIN},One", f"{TIN},Two")
    changes = Change.objects.filter(action="register_system_user", by="alice", at=AT)
    assert list(changes.values_list("reason", flat=True)) == ["file x.csv"] * 2
    (task,) = set(changes.values_list("task_id", flat=True))
    assert task is not None
    one = changes.order_by("pk").first()
    assert one is not None
    assert one.object_id == str(SystemUser.objects.get(name="One").pk)
    assert one.after == {
        "taxpayer": TIN,
        "name": "One",
        "scopes": "InvoicingAPI",
        "logins_per_minute": 12,
        "expires_at": None,
    }


@pytest.mark.parametrize(
    ("kind", "rows", "faults"),
    [
        (
            "intermediaries",
            ("tin,active_until,active", f"{TIN},,", "C9999999999,,", f"{TIN},,", f"{AGENT},,no"),
            [
                "line 3: There is no taxpayer C9999999999. Check the identifier, or register the"
                " taxpayer first",
                "line 4: C0000000001 is already in line 2",
                "line 5: it is not active: remove the row",
            ],
        ),
        (
            "intermediaries",
            (
                *("tin,active_until", f"{AGENT},2027-12-31", f"{TIN},2020-01-01", "x,"),
                *(f"{TIN},soon", f"{TIN},9999-12-31T23:00:00-14:00"),
            ),
            [
                "line 2: C0000000002 is already an intermediary, with no end date. Change the"
                " intermediary instead of registering it again",
                "line 3: Choose a later date: the role would end 2020-01-01 23:59+08:00, in the"
                " past",
                "line 4: the TIN must be 5 to 20 letters and digits",
                "line 5: active_until must be a date like 2027-12-31, not 'soon'",
                "line 6: active_until must be a date like 2027-12-31, not"
                " '9999-12-31T23:00:00-14:00'",
            ],
        ),
        (
            "permissions",
            (
                "taxpayer,intermediary,codes,revoked_at",
                f"{TIN},{AGENT},documents:veiw,",
                f"{AGENT},{TIN},{VIEW},",
                f"{AGENT},{AGENT},{VIEW},",
                f"{TIN},{AGENT},,",
                f"{TIN},{AGENT},{VIEW},2026-01-01",
            ),
            [
                "line 2: There is no permission code documents:veiw. Choose from:"
                " documents:cancel, documents:reject, documents:submit, documents:view",
                "line 3: C0000000001 is not an intermediary. Register it as an intermediary first",
                "line 4: C0000000002 needs no permission to act for itself",
                "line 5: Give at least one permission code. Choose from: documents:cancel,"
                " documents:reject, documents:submit, documents:view",
                "line 6: it is revoked: remove the row, or empty the cell revoked_at",
            ],
        ),
        (
            "system_users",
            (
                "taxpayer,name,scopes,logins_per_minute",
                f"{TIN},,,",
                f"{TIN},A,Nothing,",
                f"{TIN},B,,many",
                f"{TIN},C,,-1",
                f"{TIN},D,,99999999",
            ),
            [
                "line 2: Give a name: it is missing or blank",
                "line 3: There is no scope Nothing. Choose from: InvoicingAPI",
                "line 4: logins_per_minute must be a number, not 'many'",
                "line 5: logins_per_minute must be a number, not '-1'",
                "line 6: Choose 0 (unlimited) to 1000000 logins per minute, not 99999999",
            ],
        ),
    ],
)
def test_every_bad_row_is_named(
    kind: str, rows: tuple[str, ...], faults: list[str], pair: tuple[Any, Any]
) -> None:
    assert bad_rows(kind, *rows) == faults


def test_a_system_user_of_that_name_with_other_values_is_a_bad_row(pair: tuple[Any, Any]) -> None:
    user = make.system_user(taxpayer=pair[0], name="ERP")
    header = "taxpayer,name,logins_per_minute"
    assert bad_rows("system_users", header, f"{TIN},ERP,60") == [
        f"line 2: {TIN} already has a system user named ERP with other values: {user.client_id}"
    ]
    assert bad_rows("system_users", header, f"{TIN},ERP,12") == []


def test_one_bad_row_stops_the_import_and_a_preview_changes_nothing(pair: tuple[Any, Any]) -> None:
    make.system_user(taxpayer=pair[0], name="Old")
    rows = ("taxpayer,name", f"{TIN},New", f"{TIN},Old", "C9999999999,X")
    shown = preview("system_users", *rows)
    assert [row.name for row in shown.new] == ["New"]
    assert shown.unchanged == 1
    assert [row.line for row in shown.bad_rows] == [4]
    with pytest.raises(BadRowsError, match="1 of 3 rows are bad"):
        run("system_users", *rows)
    assert SystemUser.objects.count() == 1
    assert not Change.objects.exists()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2027-12-31", LAST),
        ("2027-12-31T00:00:00", LAST),  # a day in a workbook
        ("2027-12-31T23:59:59+08:00", LAST),  # an export
        ("2027-12-31T15:59:59Z", LAST),
        ("2027-12-31T18:00", datetime(2027, 12, 31, 10, tzinfo=UTC)),  # no whole day
    ],
)
def test_a_last_day_ends_with_its_last_moment(
    text: str, moment: datetime, pair: tuple[Any, Any]
) -> None:
    run("system_users", "taxpayer,name,expires_at", f"{TIN},ERP,{text}")
    assert SystemUser.objects.get().expires_at == moment


def test_the_transaction_only_stores_with_one_statement_for_each_table(
    pair: tuple[Any, Any],
) -> None:
    taxpayers = [make.taxpayer() for _ in range(50)]
    rows = (f"{row.tin},{AGENT},{SUBMIT} {VIEW}" for row in taxpayers)
    with inserts() as written:
        run("permissions", "taxpayer,intermediary,codes", *rows)
    tables = ("granted_permissions", "granted_permission_codes", "changes")
    assert written == [(table, True) for table in tables]


@pytest.mark.parametrize("kind", FILES)
def test_what_another_person_registers_meanwhile_undoes_the_import(
    kind: str, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    taxpayer, agent = pair
    others: dict[str, Callable[[], object]] = {
        "system_users": lambda: make.system_user(taxpayer=taxpayer, name="ERP"),
        "permissions": lambda: make.permission(taxpayer=taxpayer, intermediary=agent),
        "intermediaries": lambda: make.intermediary(taxpayer=taxpayer),
    }
    store = row_import._store

    def store_too_late(*arguments: Any) -> None:
        others[kind]()
        store(*arguments)

    monkeypatch.setattr(row_import, "_store", store_too_late)
    with pytest.raises(ServiceError, match="Another person registered"):
        run(kind, *FILES[kind][0][:2])
    assert not Change.objects.exists()


def test_a_file_has_a_limited_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_kinds, "MAX_ROWS", 1)
    with pytest.raises(ServiceError, match="more than 1 rows"):
        read("system_users", "taxpayer,name", f"{TIN},One", f"{TIN},Two")
