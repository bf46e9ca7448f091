"""Bulk work of staff: import with a preview, export that no spreadsheet runs, several at once."""

import csv
import io
import zipfile
from datetime import timedelta
from typing import Any

import openpyxl
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from identity.staff.framework import bulk_tasks as several
from identity.staff.registry import taxpayer_import
from identity.staff.registry.taxpayer_import import MAX_FILE_BYTES
from taxpayers.files import spreadsheets
from taxpayers.files.csv_escaping import escaped, unescaped
from taxpayers.files.spreadsheets import as_csv
from taxpayers.models import (
    Change,
    GrantedPermission,
    Intermediary,
    SystemUser,
    Taxpayer,
    UploadedFile,
)
from taxpayers.services import Author, block_system_user
from taxpayers.services.uploads import KEPT_FOR, keep_upload
from taxpayers.validation import ServiceError
from tests.support.factories import GrantedPermissionFactory, SystemUserFactory, TaxpayerFactory
from tests.support.staff import (
    ADDRESS,
    AUDITOR,
    REGISTRAR,
    SECURITY_OFFICER,
    VIEWER,
    errors_of,
    list_url,
    staff_client,
    task_url,
    text_of,
)
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

IMPORT = "import_registry"
HEADER = "tin,rob,name,active"
GOOD = f"{HEADER}\nC0000000001,,One,yes\nC0000000002,R-123,Two,no\n"
BAD = (
    f"{HEADER}\nC0000000001,,One,yes\nC!,,Bad,yes\n"
    "C0000000002,,,yes\n=1+1,,x,maybe\nC3,a,b,no,extra\n"
)


@pytest.fixture
def registrar(db: None) -> Client:
    return staff_client(REGISTRAR)


def send(client: Client, content: str | bytes, name: str = "march.csv") -> Any:
    """Chooses the file and looks at what comes next."""
    sent = content.encode() if isinstance(content, str) else content
    data = {"file": SimpleUploadedFile(name, sent)}
    return client.post(task_url(Taxpayer, IMPORT), data, follow=True)


def workbook(*rows: list[Any]) -> bytes:
    book, file = openpyxl.Workbook(), io.BytesIO()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    book.save(file)
    return file.getvalue()


def rows_of(response: Any) -> list[list[str]]:
    """The rows of a CSV file that was answered."""
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))


# --- Import -------------------------------------------------------------------------------------


def test_a_preview_changes_nothing_and_its_confirmation_registers_all(registrar: Client) -> None:
    preview = send(registrar, GOOD)
    assert "Register 2 taxpayers" in text_of(preview)
    assert not Taxpayer.objects.exists()
    done = registrar.post(preview.redirect_chain[-1][0], follow=True)
    assert "2 taxpayers are registered." in text_of(done)
    rows = [(str(row.identifier), row.name, row.is_active) for row in Taxpayer.objects.all()]
    assert rows == [("C0000000001", "One", True), ("C0000000002:R-123", "Two", False)]
    kept = Change.objects.filter(action=IMPORT, by="aminah", address=ADDRESS)
    assert set(kept.values_list("reason", flat=True)) == {"file march.csv"}
    assert not UploadedFile.objects.exists()


def test_every_bad_row_is_named_and_nothing_can_be_confirmed(registrar: Client) -> None:
    TaxpayerFactory.create(tin="C0000000001", name="Another")
    preview = send(registrar, BAD)
    text = text_of(preview)
    for told in ("Bad rows 5", "under the name Another", "Give a name", "more cells"):
        assert told in text
    assert "Register 1" not in text
    registrar.post(preview.redirect_chain[-1][0])
    assert Taxpayer.objects.count() == 1


def test_the_file_of_bad_rows_has_all_of_them_and_can_be_sent_again(registrar: Client) -> None:
    url = send(registrar, BAD).redirect_chain[-1][0]
    response = registrar.get(f"{url}&bad_rows")
    header, *rows = rows_of(response)
    assert header == ["line", "fault", "tin", "rob", "name", "active"]
    assert [row[0] for row in rows] == ["3", "4", "5", "6"]
    assert [row[2:] for row in rows][-2:] == [
        ["'=1+1", "", "x", "maybe"],
        ["C3", "a", "b", "no", "extra"],
    ]
    mended = "\r\n".join([",".join(header), "3,mended,C0000000003,,Good,yes"])
    assert "Register 1 taxpayer" in text_of(send(registrar, mended))


def test_a_workbook_is_read_as_the_same_table(registrar: Client) -> None:
    book = workbook(
        ["TIN", "ROB", "Name", "Active", None],
        [70000000011, None, "Numbers", True],
        [],
        ["C0000000002", "R-123", "Two\nlines", "no"],
    )
    text = text_of(send(registrar, book, "march.xlsx"))
    assert "70000000011 Numbers yes" in text
    assert "4 Write a name in one line" in text  # the line of the sheet, blank ones counted


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "empty"),
        ("name,address\nx,y\n", "must name the columns tin, name"),
        (HEADER, "no rows below its header"),
        (b"PK\x03\x04 this is no archive", "cannot be read as an XLSX workbook"),
        (b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_what_to_do(
    content: str | bytes, told: str, registrar: Client
) -> None:
    assert told in errors_of(send(registrar, content))
    assert not UploadedFile.objects.exists()


def test_size_and_rows_of_a_file_have_bounds(
    registrar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "larger than 16 MiB" in errors_of(send(registrar, b"x" * (MAX_FILE_BYTES + 1)))
    monkeypatch.setattr(taxpayer_import, "MOST_ROWS", 1)
    assert "more than 1 rows" in errors_of(send(registrar, GOOD))


def test_a_workbook_that_unpacks_to_too_much_is_not_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spreadsheets, "_MAX_UNPACKED_BYTES", 1000)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 100_000)
    with pytest.raises(ServiceError, match="far too large"):
        as_csv(file)


def test_what_was_registered_meanwhile_is_seen_before_anything_is_done(registrar: Client) -> None:
    url = send(registrar, GOOD).redirect_chain[-1][0]
    TaxpayerFactory.create(tin="C0000000002", rob="R-123", name="Somebody else's")
    assert "under the name Somebody else" in text_of(registrar.post(url))
    assert Taxpayer.objects.count() == 1


def test_a_file_is_for_who_sent_it_and_for_a_day(registrar: Client) -> None:
    url = send(registrar, GOOD).redirect_chain[-1][0]
    assert staff_client(REGISTRAR, "badrul").get(url).status_code == 404
    UploadedFile.objects.update(at=timezone.now() - KEPT_FOR - timedelta(minutes=1))
    assert registrar.get(url).status_code == 404
    keep_upload(name="x", content=b"", by=Author("x"), at=timezone.now())
    assert UploadedFile.objects.count() == 1
    assert registrar.get(task_url(Taxpayer, IMPORT) + "?upload=x").status_code == 404


@pytest.mark.parametrize("role", [VIEWER, AUDITOR, SECURITY_OFFICER])
def test_only_a_registrar_imports(role: str) -> None:
    client = staff_client(role)
    assert send(client, GOOD).status_code == 403
    assert "Import" not in text_of(client.get(list_url(Taxpayer)))


# --- Export -------------------------------------------------------------------------------------


def export(client: Client, model: Any, form: str = "csv", query: str = "") -> Any:
    return client.get(f"{list_url(model)}export.{form}{query}")


def test_an_export_has_what_the_list_shows(registrar: Client) -> None:
    TaxpayerFactory.create(tin="C0000000001", name="One")
    TaxpayerFactory.create(tin="C0000000002", rob="R-123", name="Two", is_active=False)
    header, *rows = rows_of(export(registrar, Taxpayer, query="?is_active__exact=0"))
    assert header == ["tin", "rob", "name", "active", "registered_at"]
    assert [row[:4] for row in rows] == [["C0000000002", "R-123", "Two", "no"]]
    (_header, *rows) = rows_of(export(registrar, Taxpayer, query="?q=C0000000001"))
    assert [row[0] for row in rows] == ["C0000000001"]


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_no_cell_of_an_export_is_a_formula(form: str, registrar: Client) -> None:
    for number, name in enumerate(["=1+1", "+1", "-1", "@sum", "plain"]):
        TaxpayerFactory.create(tin=f"C000000000{number}", name=name)
    response = export(registrar, Taxpayer, form)
    if form == "csv":
        names = [row[2] for row in rows_of(response)[1:]]
    else:
        book = openpyxl.load_workbook(io.BytesIO(b"".join(response.streaming_content)))
        assert book.active is not None
        cells = [row[2] for row in book.active.iter_rows(min_row=2)]
        assert {cell.data_type for cell in cells} == {"s"}
        names = [str(cell.value) for cell in cells]
    assert names == ["'=1+1", "'+1", "'-1", "'@sum", "plain"]


@given(st.text())
def test_what_is_escaped_is_read_back_as_it_was(text: str) -> None:
    assert escaped(text)[:1] not in tuple("=+-@\t\r")
    if not text.startswith(("'", "\t", "\r")):
        assert unescaped(escaped(text)) == text


def test_an_export_can_be_imported_again(registrar: Client) -> None:
    TaxpayerFactory.create(tin="C0000000001", name="-One", rob="-R123")
    TaxpayerFactory.create(tin="C0000000002", name="Two", is_active=False)
    exported = b"".join(export(registrar, Taxpayer).streaming_content)
    text = text_of(send(registrar, exported))
    assert "All of them are registered already" in text
    assert "Bad rows 0" in text


@pytest.mark.parametrize(
    "model", [Taxpayer, SystemUser, Intermediary, GrantedPermission, LoginEvent]
)
def test_every_list_is_exported_in_as_many_queries_for_thirty_rows_as_for_one(model: Any) -> None:
    client = staff_client(SECURITY_OFFICER)
    counts = []
    for rows in (1, 29):
        for _ in range(rows):
            GrantedPermissionFactory.create(taxpayer=SystemUserFactory.create().taxpayer)
        with CaptureQueriesContext(connection) as queries:
            assert len(rows_of(export(client, model))[0]) >= 5
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_workbook_has_a_bound_and_says_what_to_do(
    registrar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("identity.staff.framework.export.MOST_ROWS_WRITTEN", 2)
    TaxpayerFactory.create_batch(3)
    response = registrar.get(f"{list_url(Taxpayer)}export.xlsx?q=C0", follow=True)
    assert "more than 2 rows: export it as CSV" in text_of(response)


def test_who_took_what_away_is_kept_in_the_history(registrar: Client) -> None:
    export(registrar, SystemUser, "csv", "?state=blocked")
    (change,) = Change.objects.all()
    assert (change.action, change.by, change.address) == ("export_registry", "aminah", ADDRESS)
    assert change.after == {"form": "csv", "filters": "state=blocked"}


def test_only_who_may_takes_lists_away() -> None:
    viewer, officer = staff_client(VIEWER), staff_client(REGISTRAR, "badrul")
    assert export(viewer, Taxpayer).status_code == 403
    assert "Export" not in text_of(viewer.get(list_url(Taxpayer)))
    assert export(officer, LoginEvent).status_code == 403
    assert export(staff_client(AUDITOR, "chong"), LoginEvent).status_code == 200


# --- Several at once ----------------------------------------------------------------------------


def act(client: Client, task: str, users: list[SystemUser], **form: str) -> Any:
    data = {"action": f"{task}_several", "_selected_action": [user.pk for user in users]}
    return client.post(list_url(SystemUser), data | form, follow=True)


@pytest.fixture
def users(db: None) -> list[SystemUser]:
    return SystemUserFactory.create_batch(3)


def blocked() -> int:
    return SystemUser.objects.filter(blocked_at__isnull=False).count()


def test_several_are_named_on_a_page_before_anything_happens(
    registrar: Client, users: list[SystemUser]
) -> None:
    text = text_of(act(registrar, "block_system_user", users[:2]))
    assert "2 selected" in text
    assert users[0].name in text
    assert users[2].name not in text
    assert blocked() == 0


def test_confirmed_each_is_blocked_by_the_service(
    registrar: Client, users: list[SystemUser]
) -> None:
    block_system_user(system_user=users[0], reason="before", by=Author("x"), at=timezone.now())
    done = act(registrar, "block_system_user", users[:2], confirmed="1", reason="fraud")
    assert "1 done" in text_of(done)
    assert blocked() == 2
    (change,) = Change.objects.filter(reason="fraud")
    assert (change.by, change.address, change.object_id) == ("aminah", ADDRESS, str(users[1].pk))


def test_a_reason_is_needed(registrar: Client, users: list[SystemUser]) -> None:
    assert errors_of(act(registrar, "block_system_user", users, confirmed="1", reason=" "))
    assert blocked() == 0


def test_all_or_none(users: list[SystemUser], monkeypatch: pytest.MonkeyPatch) -> None:
    client = staff_client(SECURITY_OFFICER)
    last_day = (timezone.localtime() + timedelta(days=9)).date().isoformat()
    form = {"confirmed": "1", "reason": "renewed", "expires": last_day}
    assert "3 done" in text_of(act(client, "extend_system_user", users, **form))
    assert SystemUser.objects.filter(expires_at__gt=timezone.now()).count() == 3
    form["expires"] = (timezone.localtime() - timedelta(days=9)).date().isoformat()
    assert "Nothing was done" in errors_of(act(client, "extend_system_user", users, **form))
    assert SystemUser.objects.filter(expires_at__gt=timezone.now()).count() == 3


def test_several_are_never_extended_for_good_by_leaving_the_day_empty() -> None:
    end = timezone.now() + timedelta(days=9)
    users = SystemUserFactory.create_batch(3, expires_at=end)
    client = staff_client(SECURITY_OFFICER)
    assert "optional" not in text_of(act(client, "extend_system_user", users))
    sent = act(client, "extend_system_user", users, confirmed="1", reason="renewed", expires="")
    assert "required" in errors_of(sent)
    assert SystemUser.objects.filter(expires_at=end).count() == 3


def test_so_many_are_no_selection(
    registrar: Client, users: list[SystemUser], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(several, "MOST", 2)
    done = act(registrar, "block_system_user", users, confirmed="1", reason="fraud")
    assert "Select at most 2" in text_of(done)
    assert blocked() == 0


@pytest.mark.parametrize(
    ("role", "task"), [(VIEWER, "block_system_user"), (REGISTRAR, "extend_system_user")]
)
def test_only_who_may_do_it_to_one_may_do_it_to_several(
    role: str, task: str, users: list[SystemUser]
) -> None:
    client = staff_client(role)
    act(client, task, users, confirmed="1", reason="x", expires="2099-01-01")
    assert not Change.objects.exists()
