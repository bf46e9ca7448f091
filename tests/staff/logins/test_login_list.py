"""The list of logins: of a range of time, by who can fix them, by a taxpayer's part in them."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from identity.staff.framework import search
from identity.staff.logins.login_search import parsed_moment
from taxpayers.models import Change, Intermediary
from tests.support import make
from tests.support.answers import body_of
from tests.support.erp import Erp, event_of
from tests.support.factories import stored_login
from tests.support.staff import csv_rows_of, list_url, page_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

MIDNIGHT = datetime(2026, 3, 1, 16, tzinfo=UTC)  # of the second of March in Kuala Lumpur
MINUTE = timedelta(minutes=1)


def found(client: Client, query: str) -> list[LoginEvent]:
    return list(client.get(f"{list_url(LoginEvent)}?{query}").context["cl"].result_list)


def test_a_range_begins_with_its_first_moment_and_ends_before_its_last(viewer: Client) -> None:
    for minute in (-1, 0, 1):
        stored_login(MIDNIGHT + minute * MINUTE)
    ranges: list[tuple[dict[str, str], list[int]]] = [
        ({"from": "2026-03-02T00:00"}, [1, 0]),
        ({"to": "2026-03-02T00:00"}, [-1]),
        ({"from": "2026-03-02T00:00", "to": "2026-03-02T00:01"}, [0]),
        ({"from": "2026-03-02"}, [1, 0]),
        ({"to": "2026-03-01"}, [-1]),
        ({"from": "2026-03-01T16:00:00+00:00", "to": "2026-03-01T16:01:00+00:00"}, [0]),
        ({"from": "2026-03-03", "to": "2026-03-01"}, []),
        ({"from": "nonsense"}, [1, 0, -1]),
    ]
    for query, minutes in ranges:
        expected = [MIDNIGHT + minute * MINUTE for minute in minutes]
        assert [row.at for row in found(viewer, urlencode(query))] == expected, query


@pytest.mark.parametrize(
    "text", ["", "9999-12-31", "9999-12-31T23:59Z", "0001-01-01T00:00", "2026-02-30", "x\0"]
)
def test_a_moment_beyond_the_calendar_is_none(text: str) -> None:
    assert parsed_moment(text, is_end=True) is None


def test_logins_are_filtered_by_result_and_period_and_by_who_can_fix_them(viewer: Client) -> None:
    at = timezone.now()
    issued, blocked, inactive = (
        stored_login(at - minutes * MINUTE, reason)
        for minutes, reason in ((1, ""), (70, "system_user_blocked"), (80, "taxpayer_inactive"))
    )
    expired = stored_login(at - timedelta(days=2), "permission_expired")
    for query, logins in {
        "reason=issued": [issued],
        "reason=refused&period=1": [blocked, inactive],
        "reason=permission_expired&period=7": [expired],
        "reason=invalid_scope": [],
        "period=1h": [issued],
    }.items():
        assert found(viewer, query) == logins, query
    page = viewer.get(f"{list_url(LoginEvent)}?period=7").content.decode()
    assert re.findall(r'href="\?period=([^"&]*)" aria-current="true"', page) == ["7", "7"]


def test_a_time_is_a_period_or_two_moments_and_nothing_else(viewer: Client) -> None:
    page = viewer.get(list_url(LoginEvent)).content.decode().partition('id="changelist-filter"')[2]
    assert re.findall(r'href="\?period=([^"&]*)"', page) == ["1h", "1", "7", "30"]
    assert re.findall(r'<input.* name="([^"]*)"', page) == ["from", "to"]


def test_a_login_is_found_by_reference_client_tin_and_address(viewer: Client, erp: Erp) -> None:
    stored_login()
    refused = erp.login(scope="unknown")
    wanted = event_of(refused)
    LoginEvent.objects.filter(pk=wanted.pk).update(source_address="2001:db8::7")
    message = body_of(refused)["error_description"]
    terms = (str(wanted.pk), message, wanted.client_id, wanted.subject.lower(), "2001:DB8::7")
    for term in terms:
        assert found(viewer, f"q={term}") == [wanted], term
    assert found(viewer, "q=unknown") == []


AGENT, OTHER = "C9000000001", "C9000000002"


@pytest.fixture
def logins(db: None) -> dict[str, LoginEvent]:
    """Of an intermediary: by it, for it through another one, and for it by itself."""
    stored_login(MIDNIGHT, subject=OTHER)
    return {
        "by": stored_login(MIDNIGHT + MINUTE, subject=OTHER, actor=AGENT),
        "through": stored_login(MIDNIGHT + 2 * MINUTE, subject=AGENT, actor=OTHER),
        "itself": stored_login(MIDNIGHT + 3 * MINUTE, subject=AGENT),
    }


def test_the_part_of_the_taxpayer_is_chosen(viewer: Client, logins: dict[str, LoginEvent]) -> None:
    parts = {"by": ["by"], "for": ["itself", "through"], "itself": ["itself"]}
    for role, expected in parts.items():
        assert found(viewer, f"q={AGENT}&role={role}") == [logins[name] for name in expected]
    page = viewer.get(f"{list_url(LoginEvent)}?role=by")  # without a search it means nothing
    assert len(page.context["cl"].result_list) == 4
    assert page.context["chips"] == []


def test_of_two_parts_the_newest_are_listed_and_all_are_exported(
    auditor: Client, logins: dict[str, LoginEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(csv_rows_of(auditor.get(f"{list_url(LoginEvent)}export.csv"))) == 1 + 4
    monkeypatch.setattr(search, "MAX_FOUND", 2)
    assert found(auditor, f"q={AGENT}") == [logins["itself"], logins["through"]]
    file = auditor.get(f"{list_url(LoginEvent)}export.csv?q={AGENT}")
    exported = [row[0] for row in csv_rows_of(file)[1:]]
    assert exported == [str(logins[name].pk) for name in ("itself", "through", "by")]


def test_the_pages_of_taxpayer_and_intermediary_lead_to_their_logins(
    viewer: Client, intermediary: Erp
) -> None:
    represented = make.permission(intermediary=intermediary.role).taxpayer
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
    plan = LoginEvent.objects.filter(actor=AGENT).order_by("-pk")[:25].explain()
    assert "_actor_id_idx" in plan
    assert "->  Sort" not in plan  # the index has the order of the list
    assert "Seq Scan" not in plan


AT = datetime(2026, 3, 1, tzinfo=UTC)


def test_names_stand_beside_tins_and_client_ids_with_the_same_number_of_queries(
    viewer: Client,
) -> None:
    counts = set()
    for number in range(3):
        rob, name = f"ROB-0000{number}", f"Kedai <{number}>"
        shop = str(make.taxpayer(tin="C77000111", rob=rob, name=name).identifier)
        agent = make.taxpayer(name=f"Agent {number}")
        user = make.system_user(taxpayer=agent, name=f"Till {number}")
        stored_login(AT, "no_permission", user, subject=shop, actor=agent.tin)
        with CaptureQueriesContext(connection) as queries:
            page = viewer.get(list_url(LoginEvent))
        counts.add(len(queries))
        assert f"{user.client_id} {user.name}" in text_of(page)
        assert f"{shop} {name} by {agent.tin} {agent.name}" in text_of(page)
        assert f"Kedai &lt;{number}&gt;" in page.content.decode()
        assert f"{shop} {name} by {agent.tin} {agent.name}" in text_of(viewer.get(page_url(user)))
    assert len(counts) == 1


def test_the_page_of_a_system_user_has_its_5_newest_logins(viewer: Client) -> None:
    user = make.system_user()
    for minute in range(6):
        stored_login(AT + minute * MINUTE, "", user, source_address=f"192.0.2.{minute}")
    page = text_of(viewer.get(page_url(user))).partition("Recent logins")[2]
    assert [f"192.0.2.{minute}" in page for minute in range(6)] == [False, *[True] * 5]
    assert " by " not in page.partition("Show all logins")[0]  # for itself


def test_a_page_that_a_role_may_not_open_has_the_menu(viewer: Client) -> None:
    page = viewer.get(list_url(Change))
    assert page.status_code == 403
    shown = page.content.decode()
    assert "Your role does not allow this." in shown
    assert f'href="{list_url(LoginEvent)}"' in shown  # of the menu
