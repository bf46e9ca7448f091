"""Logins are found by the part that a taxpayer has in them, newest first, by an index."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client

from identity.staff.logins import login_search
from taxpayers.models import Intermediary
from tests.support.erp import Erp
from tests.support.factories import GrantedPermissionFactory, TaxpayerFactory
from tests.support.staff import csv_rows_of, list_url, page_url, staff_client, text_of
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
AGENT, OTHER = "C9000000001", "C9000000002"


def login(minutes: int, subject: str, actor: str = "") -> LoginEvent:
    at = NOW - timedelta(minutes=minutes)
    return LoginEvent.objects.create(pk=first_id(at), at=at, subject=subject, actor=actor)


@pytest.fixture
def viewer(db: None) -> Client:
    return staff_client("viewer")


@pytest.fixture
def logins(db: None) -> dict[str, LoginEvent]:
    """Of an intermediary: by it, for it through another one, and for it by itself."""
    login(4, OTHER)
    return {
        "by": login(3, OTHER, AGENT),
        "through": login(2, AGENT, OTHER),
        "itself": login(1, AGENT),
    }


def found(client: Client, query: str) -> list[LoginEvent]:
    return list(client.get(f"{list_url(LoginEvent)}?{query}").context["cl"].result_list)


def test_the_tin_of_an_intermediary_finds_the_logins_by_it_and_for_it(
    viewer: Client, logins: dict[str, LoginEvent]
) -> None:
    assert found(viewer, f"q={AGENT.lower()}") == [
        logins["itself"],
        logins["through"],
        logins["by"],
    ]


def test_the_name_of_one_taxpayer_finds_its_logins_and_of_several_leads_to_each(
    viewer: Client, logins: dict[str, LoginEvent]
) -> None:
    TaxpayerFactory.create(tin=AGENT, name="Prisma Tax Agents Plt")
    assert found(viewer, "q=agents+prism") == [logins["itself"], logins["through"], logins["by"]]
    TaxpayerFactory.create(tin=OTHER, name="Prisma Accounting")
    assert found(viewer, "q=prisma") == []
    page = viewer.get(f"{list_url(LoginEvent)}?q=prisma").content.decode()
    for tin in (AGENT, OTHER):
        assert f'href="?q={tin}"' in page
    assert "with such a name" not in text_of(viewer.get(f"{list_url(LoginEvent)}?q=nobody"))


@pytest.mark.parametrize(
    ("role", "expected"), [("by", ["by"]), ("for", ["itself", "through"]), ("itself", ["itself"])]
)
def test_the_part_of_the_taxpayer_is_chosen(
    role: str, expected: list[str], viewer: Client, logins: dict[str, LoginEvent]
) -> None:
    assert found(viewer, f"q={AGENT}&role={role}") == [logins[name] for name in expected]


def test_the_part_means_nothing_without_a_search(
    viewer: Client, logins: dict[str, LoginEvent]
) -> None:
    page = viewer.get(f"{list_url(LoginEvent)}?role=by")
    assert len(page.context["cl"].result_list) == 4
    assert page.context["chips"] == []


def test_of_two_parts_the_newest_are_listed_and_all_are_exported(
    logins: dict[str, LoginEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_search, "MAX_FOUND", 2)
    auditor = staff_client("auditor")
    assert found(auditor, f"q={AGENT}") == [logins["itself"], logins["through"]]
    file = auditor.get(f"{list_url(LoginEvent)}export.csv?q={AGENT}")
    exported = [row[0] for row in csv_rows_of(file)[1:]]
    assert exported == [str(logins[name].pk) for name in ("itself", "through", "by")]


def test_an_export_without_a_search_has_every_login(logins: dict[str, LoginEvent]) -> None:
    file = staff_client("auditor").get(f"{list_url(LoginEvent)}export.csv")
    assert len(csv_rows_of(file)) == 1 + 4


def test_the_pages_of_taxpayer_and_intermediary_lead_to_their_logins(
    viewer: Client, intermediary: Erp
) -> None:
    granted = GrantedPermissionFactory.create(intermediary=intermediary.role)
    represented = granted.taxpayer
    by_it = intermediary.login(on_behalf_of=str(represented.identifier))["correlationId"]
    itself = intermediary.login()["correlationId"]
    own = intermediary.system_user.taxpayer
    for page, role, references in (
        (intermediary.role, "by", [by_it]),
        (own, "by", [by_it]),
        (own, "for", [itself]),
        (represented, "for", [by_it]),
        (represented, "itself", []),
    ):
        tin = page.taxpayer.tin if isinstance(page, Intermediary) else page.tin
        link = f"{list_url(LoginEvent)}?q={tin}&amp;role={role}"
        assert link in viewer.get(page_url(page)).content.decode()
        assert [str(row.pk) for row in found(viewer, f"q={tin}&role={role}")] == references
    assert "Logins by it, for others" not in text_of(viewer.get(page_url(represented)))


@pytest.mark.postgresql  # SQLite has no partitions, and its optimiser ignores the condition
def test_the_newest_logins_by_an_intermediary_come_from_the_index_of_each_partition() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
    rows = LoginEvent.objects.filter(actor=AGENT).order_by("-pk")[:25]
    plan = rows.explain()
    assert "_actor_id_idx" in plan
    assert "->  Sort" not in plan  # the index has the order of the list
    assert "Seq Scan" not in plan


@pytest.mark.postgresql  # SQLite has no partitions
def test_every_partition_has_the_index_of_the_actor() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FILTER (WHERE isleaf) FROM pg_partition_tree('login_events')"
        )
        partitions = cursor.fetchone()[0]
        cursor.execute(
            "SELECT count(*) FROM pg_inherits h JOIN pg_index i ON i.indexrelid = h.inhrelid"
            " WHERE h.inhparent = 'login_by_actor'::regclass AND i.indisvalid"
        )
        assert cursor.fetchone()[0] == partitions > 12
        cursor.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = 'login_by_actor'::regclass"
        )
        assert cursor.fetchone()[0]
