"""Import of taxpayers from a file: upload, preview with every error, confirmation."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from identity.staff.imports import import_task
from identity.staff.imports.import_task import MAX_FILE_BYTES
from taxpayers.models import Taxpayer, UploadedFile
from taxpayers.services import Author
from taxpayers.services.uploads import MAX_UPLOADS, UPLOAD_LIFETIME, save_upload
from tests.registry.other_import import another_import
from tests.registry.workbooks import workbook
from tests.support.factories import TaxpayerFactory
from tests.support.staff import csv_rows_of, errors_of, staff_client, task_url, text_of

pytestmark = pytest.mark.django_db
__all__ = ["another_import"]  # the fixture

IMPORT = "import_registry"
HEADER = "tin,rob,name,active"
GOOD = f"{HEADER}\nC0000000001,,One,yes\nC0000000002,R-123,Two,no\n"
BAD = (
    f"{HEADER}\nC0000000001,,One,yes\nC!,,Bad,yes\n"
    "C0000000002,,,yes\n=1+1,,x,maybe\nC3,a,b,no,extra\n"
)


def send(client: Client, content: str | bytes, name: str = "march.csv") -> Any:
    """Upload the file and follow the redirect to its preview."""
    sent = content.encode() if isinstance(content, str) else content
    data = {"file": SimpleUploadedFile(name, sent)}
    return client.post(task_url(Taxpayer, IMPORT), data, follow=True)


def test_every_row_with_an_error_is_shown_and_their_file_can_be_uploaded_again(
    registrar: Client,
) -> None:
    TaxpayerFactory.create(tin="C0000000001", name="Another")
    preview = send(registrar, BAD)
    text, url = text_of(preview), preview.redirect_chain[-1][0]
    for shown in ("Rows with errors 5", "under the name Another", "Give a name", "more cells"):
        assert shown in text
    assert "Register 1" not in text
    registrar.post(url)
    assert Taxpayer.objects.count() == 1
    response = registrar.get(f"{url}&bad_rows")
    header, *rows = csv_rows_of(response)
    assert header == ["line", "error", "tin", "rob", "name", "active"]
    assert [row[0] for row in rows] == ["2", "3", "4", "5", "6"]
    assert [row[2:] for row in rows][-2:] == [
        ["'=1+1", "", "x", "maybe"],
        ["C3", "a", "b", "no", "extra"],
    ]
    corrected = "\r\n".join([",".join(header), "3,corrected,C0000000003,,Good,yes"])
    assert "Register 1 taxpayer" in text_of(send(registrar, corrected))


def test_a_file_that_is_no_table_or_too_large_is_refused_with_advice(
    registrar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "must name the columns tin, name" in errors_of(send(registrar, "name,address\nx,y\n"))
    assert "cannot be read as an XLSX workbook" in errors_of(send(registrar, b"PK\x03\x04 none"))
    assert "larger than 16 MiB" in errors_of(send(registrar, b"x" * (MAX_FILE_BYTES + 1)))
    monkeypatch.setattr(import_task, "MAX_ROWS", 1)
    assert "more than 1 rows" in errors_of(send(registrar, GOOD))
    assert not UploadedFile.objects.exists()


def test_an_upload_is_only_for_the_person_who_sent_it_and_for_a_day(registrar: Client) -> None:
    save_upload(name="x", content=b"", by=Author("badrul"), at=timezone.now())
    url = ""
    for number in range(MAX_UPLOADS + 2):
        url = send(registrar, GOOD, f"{number}.csv").redirect_chain[-1][0]
    names = UploadedFile.objects.filter(by="nurul").order_by("pk").values_list("name", flat=True)
    assert list(names) == [f"{number}.csv" for number in range(2, MAX_UPLOADS + 2)]  # the latest
    assert UploadedFile.objects.filter(by="badrul").exists()
    assert staff_client("registrar", "badrul").get(url).status_code == 404
    UploadedFile.objects.update(at=timezone.now() - UPLOAD_LIFETIME - timedelta(minutes=1))
    assert registrar.get(url).status_code == 404
    save_upload(name="x", content=b"", by=Author("x"), at=timezone.now())
    assert UploadedFile.objects.count() == 1
    for key in ("x", "", "9" * 5_000, "9" * 18, "\0"):
        assert registrar.get(task_url(Taxpayer, IMPORT), {"upload": key}).status_code == 404


def test_nothing_is_imported_while_another_import_runs(
    registrar: Client, another_import: None
) -> None:
    book = workbook(["tin", "name"], ["C0000000001", "One"])  # converted only by one of them
    assert "Another import is running" in errors_of(send(registrar, book, "march.xlsx"))
    preview = send(registrar, GOOD)
    done = registrar.post(preview.redirect_chain[-1][0], follow=True)
    assert "Another import is running" in text_of(done)
    assert not Taxpayer.objects.exists()
    assert UploadedFile.objects.exists()
