"""The feed of changes: all of them, once, in their order."""

from datetime import UTC, datetime

import pytest

from identity.api.events import changes
from taxpayers import actions
from taxpayers.models import Change, Taxpayer
from taxpayers.services import Author, rename_taxpayer
from taxpayers.services.feed import chain
from taxpayers.services.history import ChangeContext, record_export
from tests.management_api.portal import Portal, assert_ok, assert_problem, errors_of
from tests.support.factories import TaxpayerFactory

pytestmark = pytest.mark.django_db
BASE = "/changes"


def read_all(portal: Portal, after: str = "", limit: int = 2) -> tuple[list[dict[str, str]], str]:
    """All pages behind this place, and the last place."""
    items, has_more = [], True
    while has_more:
        page = assert_ok(portal.get(f"{BASE}?limit={limit}&after={after}"))
        assert len(page["items"]) <= limit
        items += page["items"]
        after, has_more = page["next_after"], page["has_more"]
    return items, after


def test_every_change_comes_once_in_its_order(portal: Portal) -> None:
    taxpayer = TaxpayerFactory.create(tin="C2584563222")
    path = f"/taxpayers/{taxpayer.identifier}"
    for number in range(5):
        portal.patch(path, {"name": f"N{number}", "reason": "x"}, If_Match="*")
    answer = portal.post(f"{path}/deactivate", {"reason": "secret reason"}, If_Match="*")
    items, after = read_all(portal)
    assert [item["action"] for item in items] == ["rename_taxpayer"] * 5 + ["deactivate_taxpayer"]
    last = Change.objects.get(action="deactivate_taxpayer")
    assert items[-1] == {
        "at": last.at.isoformat().replace("+00:00", "Z"),
        "kind": "taxpayer",
        "id": "C2584563222",
        "path": "/api/v1/management/taxpayers/C2584563222",
        "action": "deactivate_taxpayer",
        "event_type": "taxpayer.deactivated",
        "reference": answer["correlationId"],
    }
    assert read_all(portal, after) == ([], after)
    portal.post(f"{path}/activate", {"reason": "x"}, If_Match="*")
    more, _after = read_all(portal, after)
    assert [item["action"] for item in more] == ["activate_taxpayer"]


def test_an_export_is_about_no_record_and_stops_no_reader(portal: Portal) -> None:
    context = ChangeContext(actions.EXPORT_REGISTRY, Author("auditor"), datetime.now(UTC))
    record_export(Taxpayer, context, filters="", form="csv")
    rename_taxpayer(
        taxpayer=TaxpayerFactory.create(), name="New", reason="x", by=context.by, at=context.at
    )
    items, _after = read_all(portal)
    assert [item["action"] for item in items] == ["rename_taxpayer"]


def test_changes_that_are_no_business_of_the_portal_are_left_out(portal: Portal) -> None:
    at = Change._meta.get_field("at").get_default()
    for kind in ("staffaccount", "protectedapi", "signingkey", "taxpayer"):
        Change.objects.create(at=at, by="x", action="x", object_type=kind, object_id="999999")
    items, after = read_all(portal)
    assert items == []  # the taxpayer is not there
    assert after.startswith("4-")


@pytest.mark.parametrize("after", ["x", "0-0", "1", "1-", "-1-0", "1-zz", "9-1", "\u0661-1"])
def test_what_is_no_place_is_refused(portal: Portal, after: str) -> None:
    TaxpayerFactory.create(tin="C2584563222")
    portal.patch("/taxpayers/C2584563222", {"name": "N", "reason": "x"}, If_Match="*")
    answer = portal.get(f"{BASE}?after={after}")
    body = assert_problem(answer, 400, "malformed_request")
    assert "begin again" in errors_of(body)["after"]


def test_a_place_of_a_history_that_a_restore_has_replaced_is_noticed(portal: Portal) -> None:
    TaxpayerFactory.create(tin="C2584563222")
    portal.patch("/taxpayers/C2584563222", {"name": "N", "reason": "x"}, If_Match="*")
    _items, after = read_all(portal)
    Change.objects.update(at=Change.objects.get().at.replace(year=2020))
    assert_problem(portal.get(f"{BASE}?after={after}"), 400, "malformed_request")


def test_a_page_that_publishes_much_goes_on_next_time(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "BATCH", 1)
    monkeypatch.setattr(changes, "_MOST_PUBLISHED", 2)
    taxpayer = TaxpayerFactory.create()
    for number in range(5):
        at = Change._meta.get_field("at").get_default()
        rename_taxpayer(taxpayer=taxpayer, name=f"N{number}", reason="x", by=Author("x"), at=at)
    after, counts = "", []
    for _ in range(3):
        page = assert_ok(portal.get(f"{BASE}?after={after}"))
        counts.append(len(page["items"]))
        after = page["next_after"]
        assert page["has_more"] is (counts != [2, 2, 1])
    assert counts == [2, 2, 1]
