"""Whom a limit denied is known for 30 days: on Today, by client, by address and by reference."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from msgspec.structs import replace

from tests.facts.test_steps import (
    NO_PAUSE,
    NOW as BEGAN,
    PAUSE,
    RIGHT,
    WRONG,
    Memory,
    Registry,
    drive,
)
from tests.support.command_line import output_of
from tests.support.erp import FORM, Erp, new_erp
from tests.support.staff import list_url, page_url, text_of
from tokens.client_auth.certificate import CertificateHeaders
from tokens.models import LoginEvent, ThrottledCaller
from tokens.operations import login
from tokens.operations.node import Node
from tokens.operations.repeated_requests import RepeatedRequests
from tokens.rate_limits.denied_callers import DeniedCallers
from tokens.rate_limits.throttle import DenialCache, ThrottleCause
from tokens.request.arrival import receive
from tokens.request.token_request import RawTokenRequest, TokenRequest, read_token_request

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 23, 8, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
LOGINS, FAILURES = ThrottleCause.LOGINS, ThrottleCause.FAILURES


def noted(callers: DeniedCallers, *sent: tuple[ThrottleCause, str, str, datetime]) -> list[str]:
    for cause, client_id, source, at in sent:
        callers.note(cause, client_id, source, at, uuid4())
    return [one.client_id or one.source for one in callers.take()]


def test_a_caller_is_noted_once_an_hour_and_an_address_fills_no_table() -> None:
    callers = DeniedCallers()
    once = (LOGINS, "a", "", NOW)
    assert noted(callers, once, once, (FAILURES, "a", "192.0.2.1", NOW)) == ["a", "a"]
    assert noted(callers, once) == []
    assert noted(callers, (LOGINS, "a", "", NOW + HOUR)) == ["a"]
    for at in (NOW + HOUR, NOW + 2 * HOUR):
        many = [(FAILURES, f"c{n}", "192.0.2.9", at) for n in range(50)]
        assert len(noted(callers, *many)) == 10
    assert len(noted(callers, *((FAILURES, "", f"192.0.{n}.1", NOW) for n in range(2_000)))) == 1000


def test_who_is_over_its_limit_is_on_every_page_that_is_asked_for_it(viewer: Client) -> None:
    erp = new_erp(logins_per_minute=1)
    assert erp.login().status_code == 200
    denied = [erp.login() for _ in range(3)]
    assert [answer.status_code for answer in denied] == [429] * 3
    row = ThrottledCaller.objects.get()
    reference = denied[0]["correlationId"]
    assert (row.client_id, row.source, str(row.reference)) == (erp.client_id, "", reference)
    what, user = "More logins per minute than its limit", erp.system_user
    logins = list_url(LoginEvent)
    assert f"Throttled callers {user.name} {user.taxpayer}" in text_of(viewer.get("/admin/"))
    assert f"Throttled {what}" in text_of(viewer.get(page_url(user)))
    assert what in text_of(viewer.get(logins, {"q": erp.client_id}))
    found = text_of(viewer.get(logins, {"q": reference}))
    assert f"A limit refused this login: {what}." in found
    assert "Tell the caller English Too many logins. Wait as long as Retry-After says." in found
    another = text_of(viewer.get(logins, {"q": denied[2]["correlationId"]}))
    assert f"Refused by a limit in this hour: {user.name}" in another


def test_who_fails_too_often_is_found_by_its_address(viewer: Client, erp: Erp) -> None:
    answers = [erp.login(client_secret=new_erp().client_secret) for _ in range(12)]
    assert answers[-1].status_code == 429
    row = ThrottledCaller.objects.get()
    assert (row.cause, row.client_id, row.source) == ("failures", erp.client_id, "127.0.0.1")
    for term in ("127.0.0.1", erp.client_id):
        assert "Too many failed logins" in text_of(viewer.get(list_url(LoginEvent), {"q": term}))
    assert "Too many failed logins. Wait as long" in text_of(
        viewer.get(list_url(LoginEvent), {"q": str(row.reference)})
    )


def test_a_filter_offers_only_reasons_that_a_login_can_have(viewer: Client) -> None:
    page = viewer.get(list_url(LoginEvent)).content.decode()
    assert "reason=system_user_blocked" in page
    for never in ("rate_limited", "use_dpop_nonce", "temporarily_unavailable"):
        assert f"reason={never}" not in page


def test_after_30_days_they_are_deleted() -> None:
    at = timezone.now()
    for age in (29, 31):
        hour = at - timedelta(days=age)
        ThrottledCaller.objects.create(hour=hour, at=hour, cause="logins", reference=uuid4())
    output_of("prune_logins")
    assert ThrottledCaller.objects.count() == 1


META = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": FORM, "REMOTE_ADDR": "192.0.2.1"}
RAW = receive(META, urlencode(RIGHT | WRONG).encode(), BEGAN)[1]


def status(node: Node, raw: RawTokenRequest, results: list[Any]) -> int:
    arrival, _raw = receive(META, b"", node.clock.now())
    return drive(login.log_in(node, arrival, raw), results)[1].answer.status


def test_while_it_is_denied_it_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    node, reader = Node(Memory(None)), Mock(wraps=read_token_request)
    monkeypatch.setattr(login, "read_token_request", reader)
    assert status(node, RAW, [Registry(None), PAUSE]) == 429
    assert status(node, RAW, []) == 429
    assert reader.call_count == 1
    assert status(node, replace(RAW, accept="text/html"), []) == 429
    assert reader.call_count == 2, "another one is read"
    object.__setattr__(node, "denials", DenialCache())
    assert status(node, RAW, [Registry(None), NO_PAUSE]) == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "GET"},
        {"is_secure": False},
        {"body": RAW.body + b"&scope=A"},
        {"body_fault": "cut off"},
        {"content_type": "text/plain"},
        {"query_string": "a=b"},
        {"authorization": "Basic YTpi"},
        {"on_behalf_of": ""},
        {"on_behalf_of_is_misspelled": True},
        {"certificate": CertificateHeaders("a", "b", "c")},
        {"dpop": "a.b.c"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_another_request_is_not_taken_for_it(changed: dict[str, Any]) -> None:
    repeated, asked = RepeatedRequests(), TokenRequest(None, None, None)  # type: ignore[arg-type]
    repeated.remember(RAW, asked)
    assert repeated.find(RAW) is asked
    assert repeated.find(replace(RAW, **changed)) is None


def test_many_of_them_fill_no_memory() -> None:
    repeated, asked = RepeatedRequests(), TokenRequest(None, None, None)  # type: ignore[arg-type]
    for number in range(300):
        repeated.remember(replace(RAW, query_string=str(number)), asked)
    found = [repeated.find(replace(RAW, query_string=str(n))) for n in range(300)]
    assert (found[0], found[299]) == (None, asked)
