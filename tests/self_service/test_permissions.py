"""`GET /api/v1/permissions`: which taxpayers an intermediary may act for, with what, until when."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import HttpResponse

from taxpayers.models import GrantedPermission, Intermediary, SystemUser, Taxpayer
from tests.introspection.api import token_of
from tests.self_service.calls import PERMISSIONS, assert_answer, assert_error, call, text_of
from tests.support import make
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import SUBMIT, VIEW
from tests.support.moments import now

pytestmark = pytest.mark.django_db
ALLOW = "GET, HEAD"
DAY = timedelta(days=1)


def listed(token: str, **parameters: Any) -> HttpResponse:
    query = f"?{urlencode(parameters)}" if parameters else ""
    return call("GET", f"{PERMISSIONS}{query}", token)


def grant(intermediary: Erp, tin: str = "", **fields: Any) -> GrantedPermission:
    taxpayer = {"taxpayer__tin": tin} if tin else {}
    return make.permission(intermediary=intermediary.role, **taxpayer, **fields)


def taxpayers_of(answer: HttpResponse) -> list[str]:
    return [entry["taxpayer"] for entry in body_of(answer)["permissions"]]


def test_the_whole_answer(intermediary: Erp) -> None:
    grant(intermediary, "C2584563222", taxpayer__rob="202001234567", taxpayer__name="Ali Trading")
    from_, until = now() + 3 * DAY, now() + 9 * DAY
    grant(intermediary, "C7777777777", valid_from=from_, valid_until=until, codes=[VIEW])
    current = GrantedPermission.objects.earliest("pk")
    answer = listed(token_of(intermediary))
    assert assert_answer(answer, 200, ALLOW) == {
        "intermediary": {"taxpayer": intermediary.tin, "is_active": True, "active_until": None},
        "permissions": [
            {
                "taxpayer": "C2584563222:202001234567",
                "permissions": [SUBMIT, VIEW],
                "state": "in_force",
                "valid_from": text_of(current.valid_from),
                "valid_until": None,
            },
            {
                "taxpayer": "C7777777777",
                "permissions": [VIEW],
                "state": "not_yet_valid",
                "valid_from": text_of(from_),
                "valid_until": text_of(until),
            },
        ],
        "next_cursor": None,
    }
    assert "Ali Trading" not in answer.content.decode()


def test_what_is_in_force_gets_a_token_and_what_is_not_listed_does_not(intermediary: Erp) -> None:
    grant(intermediary, "C1000000001")
    grant(intermediary, "C1000000002", valid_until=now() - DAY, valid_from=now() - 2 * DAY)
    grant(intermediary, "C1000000003", revoked_at=now() - DAY)
    grant(intermediary, "C1000000004", valid_from=now() + DAY)
    grant(intermediary, "C1000000005", taxpayer__is_active=False)
    grant(intermediary, "C1000000006", codes=[])
    make.taxpayer(tin="C1000000007")
    make.permission(taxpayer__tin="C1000000008")  # to another intermediary
    grant(intermediary, "C1000000009", revoked_at=now() + DAY)
    answer = listed(token_of(intermediary))
    assert taxpayers_of(answer) == ["C1000000001", "C1000000004", "C1000000006"]
    states = {e["taxpayer"]: e["state"] for e in body_of(answer)["permissions"]}
    for number in range(1, 10):
        tin = f"C100000000{number}"
        gets_token = intermediary.login(on_behalf_of=tin).status_code == 200
        assert gets_token == (states.get(tin) == "in_force"), tin


def test_a_taxpayer_that_is_no_intermediary_acts_for_no_other(erp: Erp) -> None:
    make.permission()
    assert body_of(listed(token_of(erp))) == {
        "intermediary": None,
        "permissions": [],
        "next_cursor": None,
    }


@pytest.mark.parametrize("ended", ["deactivated", "over"])
def test_an_inactive_intermediary_acts_for_no_other(intermediary: Erp, ended: str) -> None:
    grant(intermediary)
    until = now() - DAY
    change: dict[str, Any] = {"is_active": False}
    Intermediary.objects.update(**(change if ended == "deactivated" else {"active_until": until}))
    body = body_of(listed(token_of(intermediary)))
    assert body["permissions"] == []
    assert body["intermediary"] == {
        "taxpayer": intermediary.tin,
        "is_active": False,
        "active_until": None if ended == "deactivated" else text_of(until),
    }


def test_a_token_on_behalf_of_one_taxpayer_does_not_show_the_others(intermediary: Erp) -> None:
    answer = listed(token_of(intermediary, on_behalf_of=grant(intermediary).taxpayer.tin))
    challenge = {"WWW-Authenticate": 'Bearer error="insufficient_scope"'}
    says = "Log in without the header onbehalfof"
    assert_error(answer, 403, "insufficient_scope", says, ALLOW, **challenge)


def test_pages_have_each_permission_once_in_an_order_that_lasts(intermediary: Erp) -> None:
    several = Taxpayer.objects.get(pk=grant(intermediary).taxpayer_id)
    for _ in range(4):
        make.permission(intermediary=intermediary.role, taxpayer=several)
    for _ in range(6):
        grant(intermediary)
    # One of an earlier taxpayer that is granted last: the order is not that of granting.
    make.permission(intermediary=intermediary.role, taxpayer=several)
    token = token_of(intermediary)
    whole = body_of(listed(token))["permissions"]
    assert len(whole) == 12
    for limit in (1, 5, 6, 11):
        collected: list[Any] = []
        cursor, pages = "", 0
        while pages == 0 or (cursor and pages < len(whole)):
            page = body_of(listed(token, limit=limit, cursor=cursor))
            assert len(page["permissions"]) <= limit
            collected += page["permissions"]
            cursor, pages = page["next_cursor"], pages + 1
        assert (collected, pages) == (whole, -(-12 // limit))


def test_one_taxpayer_can_be_asked_for(intermediary: Erp) -> None:
    grant(intermediary, "C1000000001")
    grant(intermediary, "C1000000001", taxpayer__rob="ROB-1")
    token = token_of(intermediary)
    assert taxpayers_of(listed(token, taxpayer="C1000000001")) == ["C1000000001"]
    assert taxpayers_of(listed(token, taxpayer=" c1000000001:rob-1")) == ["C1000000001:ROB-1"]
    make.permission(taxpayer__tin="C1000000002")
    for tin in ("C1000000002", "C1000000003"):
        assert taxpayers_of(listed(token, taxpayer=tin)) == [], "whether it exists is not shown"


BAD = {
    "cursor": ["x", "0" * 32, "WzEsMl0:1wA:x", "\u0660" * 32, "1" * 9_000],
    "limit": ["0", "501", "-1", "1.5", "1e3", "x", "\u0661", "9" * 5_000, "10 ", "00010"],
    "taxpayer": ["C1", "C1000000001:", ":", "C1000000001:1:2", "\u00e9", "\0", "a" * 9_000, "%"],
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_parameter_is_named_and_not_repeated(intermediary: Erp, name: str) -> None:
    token = token_of(intermediary)
    for value in BAD[name]:
        answer = listed(token, **{name: value})
        assert_error(answer, 400, "invalid_request", f"The parameter {name} must be", ALLOW)
        assert value[:40] not in body_of(answer)["error_description"] or len(value) < 4


def test_a_cursor_of_another_intermediary_shows_nothing_of_it(intermediary: Erp) -> None:
    other = new_erp(taxpayer=make.intermediary().taxpayer)
    for _ in range(3):
        grant(other)
        grant(intermediary)
    cursor = body_of(listed(token_of(other), limit=1))["next_cursor"]
    own = set(taxpayers_of(listed(token_of(intermediary))))
    assert set(taxpayers_of(listed(token_of(intermediary), cursor=cursor))) <= own


def test_a_limited_client_sees_what_it_may_do_for_the_taxpayer_of_its_token(
    intermediary: Erp,
) -> None:
    """It gets no token for its own taxpayer; and a token for one does not show the others."""
    first = grant(intermediary, "C1000000001", codes=[SUBMIT, VIEW])
    later = {"codes": [SUBMIT], "valid_from": now() + DAY}
    make.permission(taxpayer=first.taxpayer, intermediary=intermediary.role, **later)
    grant(intermediary, "C1000000002", codes=[VIEW])
    one = "C1000000001"
    assert listed(token_of(intermediary, on_behalf_of=one)).status_code == 403
    SystemUser.objects.update(allowed_permissions=VIEW)
    token = token_of(intermediary, on_behalf_of=one)
    for answer in (listed(token), listed(token, taxpayer=one)):
        entries = body_of(answer)["permissions"]
        assert [(e["taxpayer"], e["permissions"]) for e in entries] == [(one, [VIEW])]
    for other in ("C1000000002", "C1000000009"):
        assert body_of(listed(token, taxpayer=other))["permissions"] == []
    SystemUser.objects.update(allowed_permissions="", allowed_taxpayers=one)
    entries = body_of(listed(token))["permissions"]
    assert [e["permissions"] for e in entries] == [[SUBMIT, VIEW], [SUBMIT]]
