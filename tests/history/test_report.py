"""The auditor's report: changes of a period, grouped by task, with links, exported to a file."""

import io
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from identity.staff.framework.export import table_of
from identity.staff.framework.related import ORDER
from identity.staff.history import report
from identity.staff.history.history_admin import HistoryAdmin
from identity.staff.history.report import changes_of_task, group_changes
from taxpayers import actions, services
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, Taxpayer
from taxpayers.services import Author
from tests.client_auth.key_erp import jwks, new_pair
from tests.registry.workbooks import rows_of
from tests.support import make
from tests.support.staff import ADDRESS, list_url, page_url, rows_of_csv, text_of

pytestmark = pytest.mark.django_db
REPORT = reverse("admin:taxpayers_change_report")
NOON = datetime(2026, 3, 1, 4, 0, tzinfo=UTC)  # in Kuala Lumpur
DAY = timedelta(days=1)


def by(name: str = "aminah", at: datetime = NOON) -> dict[str, Any]:
    return {"by": Author(name, "192.0.2.7"), "at": at}


def import_taxpayers(count: int, at: datetime = NOON) -> None:
    rows = "".join(f"C9{number:09},,Company {number}\n" for number in range(count))
    taxpayers = services.IMPORT_KINDS["taxpayers"]
    parsed = taxpayers.read(io.BytesIO(f"tin,rob,name\n{rows}".encode()))
    taxpayers.run(parsed=parsed, source="march.csv", **by(at=at))


def lines_of(client: Client, **query: str) -> list[Any]:
    response = client.get(REPORT, query)
    assert response.status_code == 200
    return list(response.context["lines"])


def changes(*moments: tuple[int, str]) -> None:
    """A change at each of these seconds by each of these people."""
    rows = [
        Change(at=NOON + timedelta(seconds=s), by=who, label=f"{s} {who}") for s, who in moments
    ]
    Change.objects.bulk_create(rows)


def groups(size: int = 100, after: Change | None = None) -> list[tuple[str, int]]:
    found, _has_more = group_changes(Change.objects.order_by(*ORDER), size, after)
    return [(group.rows[0].label, group.count) for group in found]


@pytest.mark.parametrize("batch", [1, 2, 3, 200])
def test_changes_of_one_person_at_one_moment_are_one_task(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "BATCH", batch)
    changes((1, "a"), (2, "a"), (1, "b"), (1, "a"), (3, "b"), (2, "a"), (1, "a"), (1, "c"))
    tasks = [uuid4(), None, uuid4()]  # told apart by their ids
    Change.objects.bulk_create(
        Change(at=NOON, by="d", label=f"{number} of {count}", task_id=tasks[number])
        for number, count in enumerate((3, 2, 4))
        for _ in range(count)
    )
    expected = [("3 b", 1), ("2 a", 2), ("1 c", 1), ("1 b", 1), ("1 a", 3)]
    expected += [("2 of 4", 4), ("1 of 2", 2), ("0 of 3", 3)]
    assert groups() == expected
    assert groups(size=2) == expected[:2]
    rows = Change.objects.order_by(*ORDER)
    assert [group_changes(rows, size)[1] for size in (7, 8)] == [True, False]
    for position, (label, count) in enumerate(expected):
        last = Change.objects.filter(label=label)[count - 1]
        assert groups(after=last) == expected[position + 1 :], label
        assert {row.label for row in changes_of_task(last)} == {label}
    assert (
        len({row[-1] for row in table_of(rows, HistoryAdmin.exported)}) == 1 + 8
    )  # with the name of the column


def test_a_large_task_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "BATCH", 10)
    monkeypatch.setattr(report, "MAX_COUNTED", 50)
    changes(*[(2, "a")] * 200, (1, "a"), *[(0, "a")] * 40)
    with CaptureQueriesContext(connection) as queries:
        found, _ = group_changes(Change.objects.order_by(*ORDER), 5)
    assert [(len(g.rows), g.count) for g in found] == [(10, 51), (1, 1), (10, 40)]
    assert len(queries) <= 14, [query["sql"] for query in queries]


def test_an_import_is_one_line_that_opens(auditor: Client) -> None:
    import_taxpayers(30)
    services.rename_taxpayer(
        taxpayer=Taxpayer.objects.earliest("pk"), name="New", reason="merger", **by(at=NOON + DAY)
    )
    renamed, imported = lines_of(auditor)
    assert (renamed.count, renamed.is_one) == ("1", True)
    assert (imported.count, len(imported.entries), imported.has_more) == ("30", 20, True)
    page = text_of(auditor.get(REPORT))
    for shown in ("Imported the taxpayer from a file · 30 changes", "file march.csv", "merger"):
        assert shown in page
    assert "by aminah" not in page
    assert "aminah from 192.0.2.7" in page
    for url in (REPORT, page_url(imported.first)):  # the page of a person
        assert f'href="{REPORT if url != REPORT else ""}?by=aminah"' in (
            auditor.get(url).content.decode()
        )
    task = reverse("admin:taxpayers_change_task", args=[imported.first.pk])
    content = auditor.get(REPORT).content.decode()
    assert f'href="{task}"' in content
    for taxpayer in Taxpayer.objects.order_by("-pk")[:20]:
        assert f'href="{page_url(taxpayer)}"' in content


def test_a_task_of_one_record_names_it_and_the_reason_of_any_of_its_changes(
    auditor: Client,
) -> None:
    user = make.system_user()
    keys = jwks(new_pair())
    services.use_public_credential(
        system_user=user, keys=keys, expires_at=None, reason="asked by letter", **by()
    )
    (line,) = lines_of(auditor)
    assert (line.changes, line.about, line.why) == (2, str(line.first.label), "asked by letter")
    page = text_of(auditor.get(REPORT))
    assert f"Changed how the system user logs in {line.first.label} · 2 changes" in page
    assert "asked by letter" in page
    import_taxpayers(2, NOON + DAY)
    assert lines_of(auditor)[0].about == ""


def test_a_task_shows_all_of_its_changes_in_pages(
    auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "CHANGES_ON_A_PAGE", 20)
    import_taxpayers(30)
    import_taxpayers(31, at=NOON + DAY)  # another task
    url = reverse("admin:taxpayers_change_task", args=[Change.objects.earliest("pk").pk])
    first = auditor.get(url)
    second = auditor.get(url + first.context["older_url"])
    found = [e.row.label for page in (first, second) for e in page.context["entries"]]
    assert sorted(found) == [f"C9{number:09} Company {number}" for number in range(30)]
    assert (second.context["older_url"], second.context["newest_url"]) == ("", "?")
    assert auditor.get(reverse("admin:taxpayers_change_task", args=[9999])).status_code == 404


def test_the_report_is_narrowed_down_by_person_action_and_record(auditor: Client) -> None:
    one = services.register_taxpayer(taxpayer=TaxpayerId("C1000001"), name="One", **by("siti"))
    two = services.register_taxpayer(taxpayer=TaxpayerId("C1000002"), name="Two", **by("kumar"))
    services.rename_taxpayer(taxpayer=two, name="Zwei", reason="x", **by("siti", NOON + DAY))
    role = services.register_intermediary(taxpayer=two, **by("siti", NOON + 2 * DAY))
    services.grant_permission(
        taxpayer=one, intermediary=role, codes=["documents:view"], **by(at=NOON + 3 * DAY)
    )

    def found(**query: str) -> list[str]:
        return [line.first.action for line in lines_of(auditor, **query)]

    begin = datetime(2026, 2, 28, 16, 0, tzinfo=UTC)  # midnight in Kuala Lumpur
    instant = timedelta(microseconds=1)
    for at in (begin - instant, begin, begin + DAY - instant, begin + DAY):
        Change.objects.create(at=at, by="a", label=f"{at}")
    period = lines_of(auditor, by="a", since="2026-03-01", until="2026-03-01")
    assert [line.first.at for line in period] == [begin + DAY - instant, begin]
    Change.objects.filter(by="a").delete()
    for after in ("x", "-1", "9" * 30, "4"):  # an unknown place is the beginning
        assert len(lines_of(auditor, by="kumar", after=after)) == 1
    rename, grant = "rename_taxpayer", "grant_permission"
    register, become = "register_taxpayer", "register_intermediary"
    assert found() == [grant, become, rename, register, register]
    assert found(by="siti") == [become, rename, register]
    assert found(by="Siti") == []
    assert found(action=rename) == [rename]
    assert found(by="siti", action=register) == [register]
    assert found(about="c1000001") == [grant, register]
    assert found(about="C1000002") == [grant, become, rename, register]
    assert found(about="C1000002", by="siti", until="2026-03-02") == [rename]
    Change.objects.create(at=NOON, by="admin", action="change_role", label="mariam (Mariam)")
    assert found(about="mariam") == ["change_role"], "another kind of record, by its label"
    answer = auditor.get(REPORT, {"by": "siti", "after": "7"})
    assert "Changes by siti" in text_of(answer)
    last = timezone.localdate().replace(day=1) - DAY  # a preset leaves the other choices
    expected = f"?since={last.replace(day=1)}&until={last}&by=siti"
    assert dict(answer.context["presets"])["Last month"] == expected


def test_a_report_longer_than_a_page_is_read_to_its_end(
    auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "TASKS_ON_A_PAGE", 2)
    changes((1, "a"), (2, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "a"))
    found: list[str] = []
    url = f"{REPORT}?by=a&since=2026-03-01"
    while True:
        response = auditor.get(url)
        found += [line.first.label for line in response.context["lines"]]
        if not response.context["older_url"]:
            break
        url = REPORT + response.context["older_url"]
    assert found == ["5 a", "4 a", "2 a", "1 a"]
    assert response.context["newest_url"] == "?since=2026-03-01&by=a"


def test_a_wrong_value_shows_its_error(auditor: Client) -> None:
    wrong: list[tuple[dict[str, str], str]] = [
        ({"since": "2026-03-02", "until": "2026-03-01"}, "This day is before the first one."),
        ({"since": "yesterday"}, "valid date"),
        ({"since": "0001-01-01"}, "valid date"),
        ({"action": "explode"}, "valid choice"),
        ({"about": "C9999999999"}, "There is no taxpayer C9999999999."),
        ({"about": "ci_\0"}, "Null characters"),
        ({"by": "a\0"}, "Null characters"),
    ]
    for query, error in wrong:
        response = auditor.get(REPORT, query)
        assert error in str(response.context["form"].errors), query
        assert "lines" not in response.context
        assert auditor.get(f"{list_url(Change)}export.csv", query).status_code == 400


def test_the_history_of_a_taxpayer_has_that_of_its_credentials_role_and_permissions(
    auditor: Client,
) -> None:
    taxpayer, other = make.taxpayer(), make.intermediary()
    issued = services.register_system_user(reason="a test", taxpayer=taxpayer, name="Till", **by())
    services.revoke_credential(credential=issued.secret, reason="leaked", **by(at=NOON + DAY))
    services.register_intermediary(taxpayer=taxpayer, **by(at=NOON + 2 * DAY))
    granted = services.grant_permission(
        taxpayer=taxpayer, intermediary=other, codes=["documents:view"], **by(at=NOON + 3 * DAY)
    )
    services.block_system_user(
        system_user=make.system_user(), reason="another one", **by(at=NOON + 4 * DAY)
    )
    response = auditor.get(page_url(taxpayer))
    entries = response.context["changes"]["entries"]
    assert [(entry.row.action, is_own) for entry, is_own in entries] == [
        ("grant_permission", False),
        ("register_intermediary", False),
        ("revoke_secret", False),
        ("issue_credentials", False),
    ]
    assert f'href="{page_url(granted)}"' in response.content.decode()
    assert "leaked" in text_of(response)
    assert [line.first.action for line in lines_of(auditor, about=str(taxpayer.identifier))] == [
        entry.row.action for entry, _is_own in entries
    ]


def test_a_long_history_links_to_the_report_about_the_record(auditor: Client) -> None:
    user = make.system_user()
    for number in range(11):
        at = NOON + number * DAY
        services.block_system_user(system_user=user, reason="x", **by(at=at))
        services.unblock_system_user(system_user=user, reason="y", **by(at=at))
    changes_ = auditor.get(page_url(user)).context["changes"]
    assert len(changes_["entries"]) == 20
    assert all(is_own for _entry, is_own in changes_["entries"])
    assert changes_["all_url"] == f"{REPORT}?about={user.client_id}"
    assert len(lines_of(auditor, about=user.client_id)) == 11


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_the_report_is_exported_and_the_export_is_in_the_history(
    form: str, auditor: Client
) -> None:
    import_taxpayers(3)
    taxpayer = Taxpayer.objects.earliest("pk")
    renaming = by("siti", NOON + DAY)
    services.rename_taxpayer(taxpayer=taxpayer, name="=Neu", reason="merger", **renaming)
    services.rename_taxpayer(
        taxpayer=taxpayer, name="Later", reason="typing error", **by("siti", NOON + 9 * DAY)
    )
    query = {"since": "2026-03-01", "until": "2026-03-05"}
    buttons = auditor.get(REPORT, query).context["buttons"]
    (url,) = [button.url for button in buttons if f"export.{form}" in button.url]
    response: Any = auditor.get(url)
    content = b"".join(response.streaming_content)
    header, *rows = rows_of(content) if form == "xlsx" else rows_of_csv(content)
    found = [dict(zip(header, row, strict=True)) for row in rows]
    assert [row["action"] for row in found] == ["rename_taxpayer", *["import_registry"] * 3]
    assert found[0]["who"] == "siti"
    assert found[0]["from"] == "192.0.2.7"
    assert found[0]["at"] == "2026-03-02T12:00:00+08:00"
    assert found[0]["why"] == "merger"
    assert json.loads(found[0]["after"]) == {"name": "=Neu"}
    assert len({row["task"] for row in found}) == 2
    *_, begun, ended = Change.objects.order_by("pk")
    for change in (begun, ended):
        assert (change.action, change.by) == (actions.EXPORT_REGISTRY.name, "farid")
        assert (change.object_type, change.address) == ("change", ADDRESS)
    assert begun.after == {"form": form, "filters": "From: 1 Mar 2026; Until: 5 Mar 2026"}
    assert ended.after == {"rows": 4, "sha256": sha256(content).hexdigest()}
    again: Any = auditor.get(url)
    assert b"".join(again.streaming_content) == content
    assert begun.task_id == ended.task_id
