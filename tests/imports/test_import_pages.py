"""Files are uploaded, previewed, imported and undone on pages; exports have what the pages show."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.staff.imports import import_task
from identity.staff.imports.import_task import MAX_FILE_BYTES
from taxpayers.certificates import TLS_CLIENT_AUTH
from taxpayers.client_keys import PRIVATE_KEY_JWT
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import (
    Change,
    Credential,
    GrantedPermission,
    Intermediary,
    SystemUser,
    Taxpayer,
    UploadedFile,
)
from taxpayers.services import IMPORT_KINDS, Author
from taxpayers.services.uploads import MAX_UPLOADS, UPLOAD_LIFETIME, save_upload
from taxpayers.standing.differences import COMPARED
from tests.registry.other_import import another_import
from tests.registry.workbooks import rows_of, workbook
from tests.support import make
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.factories import SUBMIT, stored_login
from tests.support.staff import (
    ADDRESS,
    csv_rows_of,
    errors_of,
    list_url,
    page_url,
    staff_client,
    task_url,
    text_of,
)
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

__all__ = ["another_import"]  # the fixture

TIN, AGENT = "C9000000001", "C9000000002"
# Of each kind: the list, the task, the role, a good file of one row, and how it is counted.
PAGES: dict[str, tuple[type[Model], str, str, str, str]] = {
    "taxpayers": (
        *(Taxpayer, "import_registry", "registrar"),
        *("tin,rob,name,active\nC9000000009,R-123,Kedai,no\n", "1 taxpayer"),
    ),
    "intermediaries": (
        *(Intermediary, "import_intermediaries", "registrar"),
        *(f"tin,active_until\n{TIN},2098-12-31\n", "1 intermediary"),
    ),
    "permissions": (
        *(GrantedPermission, "import_permissions", "registrar"),
        *(f"taxpayer,intermediary,codes\n{TIN},{AGENT},{SUBMIT}\n", "1 permission"),
    ),
    "system_users": (
        *(SystemUser, "import_system_users", "security officer"),
        *(f"taxpayer,name\n{TIN},ERP\n", "1 system user"),
    ),
}
EVERY_KIND = pytest.mark.parametrize("kind", PAGES)


@pytest.fixture(autouse=True)
def registered(db: None) -> None:
    make.taxpayer(tin=TIN)
    make.intermediary(taxpayer__tin=AGENT)


def send(client: Any, kind: str, content: bytes, name: str = "march.csv") -> Any:
    model, task = PAGES[kind][:2]
    data = {"file": SimpleUploadedFile(name, content)}
    return client.post(task_url(model, task), data, follow=True)


@EVERY_KIND
def test_a_preview_changes_nothing_and_its_confirmation_registers_all(kind: str) -> None:
    model, _task, role, file, counted = PAGES[kind]
    client, before = staff_client(role), model._default_manager.count()
    shown = send(client, kind, file.encode())
    assert f"Register {counted}" in text_of(shown)
    assert file.splitlines()[1].split(",")[0] in text_of(shown)
    assert model._default_manager.count() == before
    done = client.post(shown.redirect_chain[-1][0], follow=True)
    assert f"{counted} is registered." in text_of(done)
    assert done.request["PATH_INFO"] == list_url(model)
    assert model._default_manager.count() == before + 1
    assert not Credential.objects.exists()
    assert not UploadedFile.objects.exists()
    change = Change.objects.get()
    assert (change.reason, change.address) == ("file march.csv", ADDRESS)
    again = text_of(send(client, kind, file.encode()))
    assert "Everything in this file is already registered." in again


@EVERY_KIND
@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_the_template_has_the_columns_that_the_import_reads(kind: str, form: str) -> None:
    model, task, role = PAGES[kind][:3]
    client = staff_client(role)
    response = client.get(task_url(model, task), {"template": form})
    content: Any = getattr(response, "streaming_content", ())
    rows = csv_rows_of(response) if form == "csv" else rows_of(b"".join(content))
    assert rows == [list(IMPORT_KINDS[kind].columns.all)]
    page = text_of(client.get(task_url(model, task)))
    assert all(column in page for column in IMPORT_KINDS[kind].columns.all)


def test_a_workbook_with_dates_is_read_as_the_same_table(registrar: Client) -> None:
    book = workbook(["TIN", "Active_until"], [TIN, "2098-12-31"])
    shown = send(registrar, "intermediaries", book, "march.xlsx")
    assert "31 Dec 2098, 23:59" in text_of(shown)


GOOD = PAGES["taxpayers"][3]
BAD = f"""\
tin,rob,name,active
{TIN},,One,yes
C!,,Bad,yes
C0000000002,,,yes
=1+1,,x,maybe
C3,a,b,no,extra
"""


def test_every_row_with_an_error_is_shown_and_their_file_can_be_uploaded_again(
    registrar: Client,
) -> None:
    Taxpayer.objects.filter(tin=TIN).update(name="Another")
    preview = send(registrar, "taxpayers", BAD.encode())
    text, url = text_of(preview), preview.redirect_chain[-1][0]
    for shown in ("Rows with errors 5", "under the name Another", "Give a name", "more cells"):
        assert shown in text
    assert "Register 1" not in text
    registrar.post(url)
    assert Taxpayer.objects.count() == 2
    header, *rows = csv_rows_of(registrar.get(f"{url}&bad_rows"))
    assert header == ["line", "error", "tin", "rob", "name", "active"]
    assert [row[0] for row in rows] == ["2", "3", "4", "5", "6"]
    assert [row[2:] for row in rows][-2:] == [
        ["'=1+1", "", "x", "maybe"],
        ["C3", "a", "b", "no", "extra"],
    ]
    corrected = "\r\n".join([",".join(header), "3,corrected,C0000000003,,Good,yes"])
    shown = text_of(send(registrar, "taxpayers", corrected.encode()))
    assert "Register 1 taxpayer" in shown


def test_a_file_that_is_no_table_or_too_large_is_refused_with_advice(
    registrar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_task, "MAX_ROWS", 1)
    for content, advice in (
        (b"name,address\nx,y\n", "must name the columns tin, name"),
        (b"PK\x03\x04 none", "cannot be read as an XLSX workbook"),
        (b"x" * (MAX_FILE_BYTES + 1), "larger than 16 MiB"),
        (f"{GOOD}C9000000008,,Two,no\n".encode(), "more than 1 rows"),
    ):
        assert advice in errors_of(send(registrar, "taxpayers", content))
    assert not UploadedFile.objects.exists()


def test_an_upload_is_only_for_the_person_who_sent_it_and_for_a_day(registrar: Client) -> None:
    save_upload(name="x", content=b"", by=Author("badrul"), at=timezone.now())
    url = ""
    for number in range(MAX_UPLOADS + 2):
        page = send(registrar, "taxpayers", GOOD.encode(), f"{number}.csv")
        url = page.redirect_chain[-1][0]
    names = UploadedFile.objects.filter(by="nurul").order_by("pk").values_list("name", flat=True)
    assert list(names) == [f"{number}.csv" for number in range(2, MAX_UPLOADS + 2)]  # the latest
    assert UploadedFile.objects.filter(by="badrul").exists()
    assert staff_client("registrar", "badrul").get(url).status_code == 404
    UploadedFile.objects.update(at=timezone.now() - UPLOAD_LIFETIME - timedelta(minutes=1))
    assert registrar.get(url).status_code == 404
    save_upload(name="x", content=b"", by=Author("x"), at=timezone.now())
    assert UploadedFile.objects.count() == 1
    for key in ("x", "", "9" * 5_000, "9" * 18, "\0"):
        page = registrar.get(task_url(Taxpayer, "import_registry"), {"upload": key})
        assert page.status_code == 404


def test_nothing_is_imported_while_another_import_runs(
    registrar: Client, another_import: None
) -> None:
    book = workbook(["tin", "name"], ["C0000000001", "One"])  # converted only by one of them
    sent = send(registrar, "taxpayers", book, "march.xlsx")
    assert "Another import is running" in errors_of(sent)
    preview = send(registrar, "taxpayers", GOOD.encode())
    done = registrar.post(preview.redirect_chain[-1][0], follow=True)
    assert "Another import is running" in text_of(done)
    assert Taxpayer.objects.count() == 2
    assert UploadedFile.objects.exists()


def test_an_upload_for_one_kind_is_no_file_of_another_kind(registrar: Client) -> None:
    send(registrar, "intermediaries", PAGES["intermediaries"][3].encode())
    other = task_url(GrantedPermission, "import_permissions")
    shown = registrar.get(other, {"upload": UploadedFile.objects.get().pk}, follow=True)
    assert "must name the columns taxpayer, intermediary, codes" in text_of(shown)


@EVERY_KIND
def test_an_export_can_be_imported_again(kind: str) -> None:
    model, _task, role = PAGES[kind][:3]
    make.system_user(taxpayer=make.permission().taxpayer)
    client = staff_client(role)
    exported: Any = client.get(f"{list_url(model)}export.csv")
    text = text_of(send(client, kind, b"".join(exported.streaming_content)))
    assert "Everything in this file is already registered." in text
    assert "Rows with errors 0" in text


def test_the_command_imports_taxpayers_or_what_it_is_told_and_is_safe_to_repeat(
    tmp_path: Path,
) -> None:
    path = tmp_path / "march.csv"
    for kind, (*_, file, _counted) in PAGES.items():
        path.write_text(file)
        done = output_of("import_registry", str(path), "--kind", kind)
        shown = kind.replace("_", " ")
        assert done == f"1 {shown} are registered. 0 were registered before.\n"
        again = json_output_of("import_registry", str(path), "--kind", kind)
        assert again == {"registered": 0, "unchanged": 1, "bad_rows": []}
    path.write_text("tin,name\nC9000000010,New\n")
    assert json_output_of("import_registry", str(path))["registered"] == 1
    assert Taxpayer.objects.filter(tin="C9000000010").exists()
    line = error_of("import_registry", str(path), "--kind", "secrets")
    assert "invalid choice: 'secrets'" in line


TINS = ["C7000000001", "C7000000002", "C7000000003"]
WHY = {"reason": "the wrong file"}


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Two new taxpayers, and one that was registered before."""
    json_output_of("register_taxpayer", TINS[0], "--name", "Kedai")
    path = tmp_path / "wrong.csv"
    path.write_text("tin,name\n" + "".join(f"{tin},Kedai\n" for tin in TINS))
    json_output_of("import_registry", str(path))
    return str(path)


def imported() -> Change:
    return Change.objects.filter(action="import_registry").latest("pk")


def undo(change: Change) -> tuple[str, ...]:
    return "undo_import", str(change.pk), "--reason", "the wrong file"


def tins() -> set[str]:
    return set(Taxpayer.objects.values_list("tin", flat=True))


def test_a_registrar_undoes_it_and_the_history_shows_both(file: str, registrar: Client) -> None:
    url = task_url(imported(), "undo_import")
    task = registrar.get(reverse("admin:taxpayers_change_task", args=[imported().pk]))
    assert url in task.content.decode()
    asked = text_of(registrar.get(url))
    assert "wrong.csv" in asked
    assert "2 taxpayers are removed." in asked
    assert registrar.post(url, {"reason": ""}).status_code == 200
    assert tins() == {TIN, AGENT, *TINS}
    assert "2 taxpayers were removed." in text_of(registrar.post(url, WHY, follow=True))
    assert tins() == {TIN, AGENT, TINS[0]}
    undone = Change.objects.filter(action="undo_import")
    assert {(row.by, row.reason) for row in undone} == {("nurul", "the wrong file")}
    assert len({row.task_id for row in undone}) == 1
    assert {row.before["tin"] for row in undone} == {*TINS[1:]}
    key, removal = undone[0].object_id, page_url(undone[0])
    before = registrar.get(reverse("admin:taxpayers_taxpayer_change", args=[key]))
    assert before["Location"] == removal  # what links of before it lead to
    told = " ".join(COMPARED[0].differences())
    assert not any(tin in told for tin in TINS)  # the history says that they are gone
    assert "This import was undone." in error_of(*undo(imported()))
    _everything_about_it_is_reported(registrar, ["undo_import", "import_registry"])
    assert json_output_of("import_registry", file)["registered"] == 2
    _everything_about_it_is_reported(
        registrar, ["import_registry", "undo_import", "import_registry"]
    )
    page = text_of(registrar.get(page_url(Taxpayer.objects.get(tin=TINS[1]))))
    assert page.count("Removed the taxpayer") == 1
    assert json_output_of(*undo(imported())) == {"removed": 2}


def _everything_about_it_is_reported(client: Client, actions: list[str]) -> None:
    """Also what was done before it was removed, under the same TIN and no other one."""
    report = client.get(reverse("admin:taxpayers_change_report"), {"about": TINS[1]})
    assert [line.first.action for line in report.context["lines"]] == actions
    assert {line.about for line in report.context["lines"]} == {f"{TINS[1]} Kedai"}
    assert f"with this identifier, {TINS[1]} Kedai, was removed" in text_of(report)


BUILDS: dict[str, Callable[[Taxpayer], Any]] = {
    "system user": lambda row: make.system_user(taxpayer=row),
    "intermediary": lambda row: make.intermediary(taxpayer=row),
    "permission": lambda row: make.permission(taxpayer=row),
    "change": lambda row: json_output_of("deactivate_taxpayer", row.tin),
}


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_nothing_is_undone_once_something_was_built_upon_one(
    build: Callable[[Taxpayer], Any], file: str, registrar: Client
) -> None:
    build(Taxpayer.objects.get(tin=TINS[2]))
    page = registrar.post(task_url(imported(), "undo_import"), WHY, follow=True)
    assert "was changed since, or is used" in text_of(page)
    assert TINS[2] in error_of(*undo(imported()))
    assert {*TINS} <= tins()


def test_all_of_a_large_import_is_looked_at_when_it_is_undone(
    file: str, registrar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taxpayers.services.undo_import._BATCH", 1)
    make.system_user(taxpayer=Taxpayer.objects.get(tin=TINS[1]))
    url = task_url(imported(), "undo_import")
    assert "2 taxpayers are removed." in text_of(registrar.get(url))
    refused = registrar.post(url, WHY).context["form"].non_field_errors()
    assert f"Kedai ({TINS[1]}) was changed since, or is used" in refused[0]
    assert {*TINS} <= tins()


def test_nothing_is_undone_while_another_import_runs(another_import: None) -> None:
    json_output_of("register_taxpayer", TINS[0], "--name", "Kedai")
    assert "Another import is running" in error_of(*undo(Change.objects.latest("pk")))


def test_only_an_import_of_taxpayers_has_the_button(file: str, registrar: Client) -> None:
    first = Change.objects.earliest("pk")
    for row, shown in ((imported(), True), (first, False)):
        titles = [str(one.title) for one in registrar.get(page_url(row)).context["buttons"]]
        assert ("Undo the import" in titles) is shown
    assert "not an import of taxpayers" in error_of(*undo(first))
    assert "no change 999" in error_of("undo_import", "999")


DAY = timedelta(days=1)


def exported(
    model: type[Model], form: str = "csv", query: str = "", by: str = "aminah"
) -> list[dict[str, Any]]:
    response: Any = staff_client("auditor", by).get(f"{list_url(model)}export.{form}{query}")
    content = b"".join(response.streaming_content) if form == "xlsx" else b""
    header, *rows = rows_of(content) if form == "xlsx" else csv_rows_of(response)
    return [dict(zip(header, row, strict=True)) for row in rows]


def shown(moment: Any) -> str:
    return timezone.localtime(moment).isoformat(timespec="seconds")


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_a_system_user_has_its_limits_and_its_credentials(form: str) -> None:
    at = timezone.now()
    user = make.system_user(
        token_binding=TokenBinding.DPOP,
        allowed_permissions="documents:submit documents:view",
        allowed_taxpayers="C1 C2:R-1",
        only_on_behalf=True,
    )
    old = make.credential(
        system_user=user, allowed_networks="192.0.2.0/24 2001:db8::/32", last_used_at=at
    )
    new = make.credential(system_user=user, slot=2, expires_at=at + 9 * DAY)
    make.credential(system_user=user, slot=None, revoked_at=at)
    (row,) = exported(SystemUser, form)
    expected = {
        "state": "active",
        "last_used_at": shown(at),
        "login_method": "client_secret",
        "token_binding": "dpop",
        "allowed_permissions": "documents:submit documents:view",
        "allowed_taxpayers": "C1 C2:R-1",
        "credential_1": str(old),
        "credential_1_kind": "secret",
        "credential_1_name": "",
        "credential_1_expires_at": shown(old.expires_at),
        "credential_1_last_used_at": shown(at),
        "credential_1_allowed_networks": "192.0.2.0/24 2001:db8::/32",
        "credential_2": str(new),
        "credential_2_kind": "secret",
        "credential_2_name": "",
        "credential_2_expires_at": shown(new.expires_at),
        "credential_2_last_used_at": "",
        "credential_2_allowed_networks": "",
        "only_on_behalf": "yes",
    }
    assert {name: row[name] or "" for name in expected} == expected
    assert list(row)[-len(expected) :] == list(expected)


def test_a_client_with_a_certificate_or_a_key_says_so() -> None:
    keyed = make.system_user(token_endpoint_auth_method=PRIVATE_KEY_JWT)
    make.credential(system_user=keyed, public_jwk='{"kid": "key of March"}')
    named = make.system_user(token_endpoint_auth_method=TLS_CLIENT_AUTH)
    make.credential(system_user=named, certificate_name="CN=erp.example")
    rows = {row["client_id"]: row for row in exported(SystemUser)}
    names = ("login_method", "token_binding", "credential_1_kind", "credential_1_name")
    assert [rows[keyed.client_id][name] for name in names] == [
        *("private_key_jwt", "none", "key", "key of March")
    ]
    assert [rows[named.client_id][name] for name in names] == [
        *("tls_client_auth", "tls", "certificate", "CN=erp.example")
    ]


def test_the_state_names_each_thing_that_refuses_its_logins() -> None:
    at = timezone.now()
    make.system_user(taxpayer__is_active=False, expires_at=at - DAY, blocked_at=at)
    (row,) = exported(SystemUser)
    assert row["state"] == (
        "no_valid_credential system_user_blocked system_user_expired taxpayer_inactive"
    )


def test_an_expired_secret_is_exported_until_it_is_replaced() -> None:
    at = timezone.now()
    old = make.credential(created_at=at - 9 * DAY, expires_at=at - DAY)
    (row,) = exported(SystemUser)
    assert row["state"] == "no_valid_credential"
    assert row["credential_1_expires_at"] == shown(at - DAY)
    Credential.objects.filter(pk=old.pk).update(slot=None)
    new = make.credential(system_user=old.system_user)
    (row,) = exported(SystemUser, by="badrul")
    assert (row["credential_1"], row["credential_2"]) == (str(new), "")


def test_an_import_does_not_leave_out_a_limit_unseen() -> None:
    make.system_user(allowed_taxpayers="C1")
    file = staff_client("auditor").get(f"{list_url(SystemUser)}export.csv")
    content = b"".join(file.streaming_content)  # type: ignore[attr-defined]
    SystemUser.objects.all().delete()
    page = send(staff_client("security officer", "badrul"), "system_users", content)
    assert "an import cannot set allowed_taxpayers: remove the row" in text_of(page)
    assert not SystemUser.objects.exists()


def test_a_login_names_the_secret_and_what_was_wrong_and_since_when() -> None:
    at = timezone.now()
    secret = make.credential()
    user = secret.system_user
    stored_login(at - DAY, "secret_expired", user, since=at - DAY, secret_id=secret.pk)
    stored_login(at, "missing_parameter", user, parameter="client_secret")
    missing, expired = exported(LoginEvent, query=f"?q={secret.system_user.client_id}")
    assert (expired["secret"], expired["since"]) == (str(secret), shown(at - DAY))
    assert (missing["secret"], missing["since"]) == ("", "")
    assert (missing["parameter"], expired["parameter"]) == ("client_secret", "")


def test_a_permission_and_an_intermediary_have_all_that_their_pages_show() -> None:
    granted: Any = make.permission(intermediary__taxpayer__is_active=False)
    query = f"?q={granted.intermediary.taxpayer.tin}"
    (permission,), (role,) = (
        exported(model, query=query, by=model.__name__)
        for model in (GrantedPermission, Intermediary)
    )
    assert permission["granted_at"] == shown(granted.created_at)
    assert role["taxpayer_active"] == "no"
