"""Each list with its filters, and its pages: each record once, whatever changes in between."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taxpayers.models import Taxpayer
from tests.management_api.portal import Portal, assert_ok, assert_problem, errors_of, text_of
from tests.support.answers import body_of
from tests.support.erp import new_erp
from tests.support.factories import (
    SUBMIT,
    VIEW,
    GrantedPermissionFactory,
    IntermediaryFactory,
    TaxpayerFactory,
)

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
AGENT, CLIENT, OTHER = "C9876543210", "C2584563222", "C1000000001:12345"


def found(portal: Portal, path: str, name: str) -> list[Any]:
    return [item[name] for item in assert_ok(portal.get(path))["items"]]


@pytest.fixture
def registry(portal: Portal) -> dict[str, Any]:
    """An intermediary that acts for one taxpayer, another pair, and three logins."""
    role: Any = IntermediaryFactory.create(taxpayer__tin=AGENT, taxpayer__name="Hub")
    client: Any = TaxpayerFactory.create(tin=CLIENT, name="Ali Trading")
    TaxpayerFactory.create(tin="C1000000001", rob="12345", name="Bakar Trading")
    TaxpayerFactory.create(tin="C1000000001", name="Bakar & Sons", is_active=False)
    granted = [GrantedPermissionFactory.create(taxpayer=client, intermediary=role) for _ in "12"]
    other: Any = GrantedPermissionFactory.create(
        taxpayer__name="A", intermediary__taxpayer__name="B"
    )
    yesterday = datetime.now(UTC) - DAY
    blocked = {"blocked_at": yesterday, "blocked_by": "officer", "blocked_reason": "abuse"}
    new_erp(taxpayer__tin="C3000000003", taxpayer__name="C", name="Stolen", **blocked)
    agent = new_erp(taxpayer=role.taxpayer, name="Old ERP")
    answers = [agent.login(on_behalf_of=tin) for tin in (CLIENT, "C1111111111", None)]
    return {
        **dict(zip("ABC", (answer["correlationId"] for answer in answers), strict=True)),
        "agent": agent.client_id,
        "granted": [row.pk for row in granted],
        "other": other.pk,
        "tomorrow": text_of(datetime.now(UTC) + DAY),
        "yesterday": text_of(yesterday),
    }


def test_each_filter_leaves_what_it_names(portal: Portal, registry: dict[str, Any]) -> None:
    """`#` in a query: of the intermediary's client; the letters: its logins, the newest first."""
    granted, other = registry["granted"], registry["other"]
    table: dict[str, dict[str, list[Any]]] = {
        "taxpayers taxpayer": {
            "?tin=c1000000001": ["C1000000001", OTHER],
            "?name=trading": [OTHER, CLIENT],
            "?name=trad+bak": [OTHER],
            "?state=inactive": ["C1000000001"],
            "?state=active&name=bakar&limit=1&cursor=": [OTHER],
            "?name=unknown": [],
        },
        "system-users name": {
            "?client_id=#": ["Old ERP"],
            f"?taxpayer={AGENT.lower()}": ["Old ERP"],
            "?taxpayer=C9999999999": [],
            "?name=old": ["Old ERP"],
            "?state=blocked": ["Stolen"],
        },
        "intermediaries taxpayer": {f"?tin={AGENT}": [AGENT]},
        "permissions id": {
            "": [*granted, other],
            f"?intermediary={AGENT}": granted,
            f"?taxpayer={CLIENT}&limit=1": granted[:1],
            f"?taxpayer={OTHER}&intermediary={AGENT}": [],
            "?taxpayer=C1111111111": [],
        },
        "logins reference": {
            "?client_id=#": ["C", "B", "A"],
            f"?taxpayer={CLIENT}": ["A"],
            f"?intermediary={AGENT}": ["B", "A"],
            "?outcome=no_permission": ["B"],
            f"?since={registry['tomorrow']}": [],
            f"?client_id=#&since={registry['yesterday']}&limit=2": ["C", "B"],
        },
    }
    for place, queries in table.items():
        path, name = place.split()
        for query, expected in queries.items():
            asked = f"/{path}{query.replace('#', registry['agent'])}"
            right = [registry.get(value, value) for value in expected]
            assert found(portal, asked, name) == right, asked
    assert len(found(portal, "/intermediaries", "taxpayer")) == 2
    codes = found(portal, "/permission-codes?limit=500", "code")
    assert {SUBMIT, VIEW} <= set(codes)
    assert codes == sorted(codes)


def test_logins_are_found_by_one_thing_at_a_time(portal: Portal) -> None:
    both = portal.get(f"/logins?client_id=x&taxpayer={CLIENT}")
    assert_problem(both, 400, "malformed_request", "Filter by one of client_id, taxpayer")
    wrong = errors_of(body_of(portal.get("/logins?since=yesterday&taxpayer=x")))
    assert wrong.keys() == {"since", "taxpayer"}
    wrong = errors_of(body_of(portal.get("/logins?outcome=foo")))
    assert "invalid_credentials" in wrong["outcome"], "it names the choices"


def test_pages_have_each_record_once_whatever_changes_between_them(portal: Portal) -> None:
    for n in range(9):
        TaxpayerFactory.create(tin=f"D100000000{n}", rob="" if n % 2 else "12345")
    whole = found(portal, "/taxpayers", "taxpayer")
    assert sorted(whole) == whole
    assert len(whole) == 10
    for limit in (1, 3, 9, 10):
        collected: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = body_of(portal.get(f"/taxpayers?limit={limit}&cursor={cursor}"))
            assert len(page["items"]) <= limit
            collected += [item["taxpayer"] for item in page["items"]]
            assert len(collected) <= len(whole)
            cursor = page["next_cursor"]
        assert collected == whole
    page = body_of(portal.get("/taxpayers?limit=4"))
    last = page["items"][-1]["taxpayer"]
    Taxpayer.objects.get(tin=last.partition(":")[0]).delete()
    TaxpayerFactory.create(tin="A0000000000")
    rest = found(portal, f"/taxpayers?cursor={page['next_cursor']}", "taxpayer")
    assert rest == whole[whole.index(last) + 1 :]
