"""The confirm page: a ticket opens it once, and a person decides; each refusal has its own text."""

import re
import time
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings as configured
from django.test import Client
from pytest_django import Settings

from identity.confirm.page import OPEN_FOR
from identity.confirm.refusals import TEXTS
from identity.confirm.words import words_of
from taxpayers.models import GrantedPermission, PermissionRequest, SystemUser
from taxpayers.services import Author, AuthorKind, block_system_user
from tests.client_auth.key_erp import KeyErp, new_key_erp, new_pair
from tests.permission_requests.parties import RETURN, asked, make_late, new_agent
from tests.permission_requests.stand_in_portal import new_ticket
from tests.support import make
from tests.support.factories import VIEW, PermissionRequestFactory
from tests.support.moments import now

pytestmark = pytest.mark.django_db
PERSON = {"sub": "p-1", "capacity": "director", "acr": "high"}


@pytest.fixture
def portal() -> KeyErp:
    return with_scopes("RegistryAPI:permissions")


def with_scopes(scopes: str) -> KeyErp:
    """As if operators had registered it: only they give these scopes."""
    erp = new_key_erp()
    SystemUser.objects.filter(pk=erp.system_user.pk).update(scopes=scopes)
    return erp


@pytest.fixture
def row() -> PermissionRequest:
    return make.permission_request(tin=make.taxpayer().tin)


def ticket_for(row: PermissionRequest, portal: KeyErp, **claims: Any) -> str:
    """A right one, but for these; `iat` and `exp` are seconds from now."""
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key = portal.pair.private.private_bytes(*form).decode()
    audience = claims.pop("aud", configured.CONFIRM_URL)
    moments = {name: int(time.time()) + claims[name] for name in ("iat", "exp") if name in claims}
    said = {**PERSON, "taxpayer": str(row.asked), "request": str(row.pk)}
    return new_ticket(key, portal.client_id, portal.pair.kid, audience, **said | claims | moments)


def opened(row: PermissionRequest, ticket: str, **headers: str) -> Any:
    return Client().get(f"/confirm/{row.pk}", {"ticket": ticket}, headers=headers)


def form_of(page: Any) -> dict[str, str]:
    assert page.status_code == 200, page.content
    pattern = r'<input type="hidden" name="(\w+)" value="([^"]*)"'
    return {name: unescape(value) for name, value in re.findall(pattern, page.content.decode())}


def decide(row: PermissionRequest, form: dict[str, str], decision: str, **more: Any) -> Any:
    return Client().post(f"/confirm/{row.pk}", {**form, "decision": decision, **more})


def text_of(page: Any) -> str:
    body = page.content.decode().partition("</style>")[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def assert_refused(page: Any, name: str) -> None:
    assert (page.status_code, TEXTS[name].what in text_of(page)) == (TEXTS[name].status, True), (
        name,
        text_of(page),
    )
    assert "Nothing was decided on this page." in text_of(page)


def test_a_person_approves_and_is_led_back(portal: KeyErp) -> None:
    agent, taxpayer = new_agent(), make.taxpayer()
    make.permission(taxpayer=taxpayer, intermediary=agent.role, codes=[VIEW])
    row = asked(agent, taxpayer.tin, return_address=RETURN, valid_until="2037-01-31")
    page = opened(row, ticket_for(row, portal))
    shown = text_of(page)
    words = words_of(row, now(), row.valid_until)
    for line in words.text.split("\n"):  # what is hashed is what is shown
        assert line.partition(": ")[2 if line[:9] == "documents" else 0] in shown
    assert not page.cookies
    policy = page["Content-Security-Policy"]
    assert f"form-action 'self' {RETURN[:25]};" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert (page["Cache-Control"], page["Referrer-Policy"]) == ("no-store", "no-referrer")
    done = decide(row, form_of(page), "approve")
    assert (done.status_code, done.cookies) == (303, {})
    back = urlsplit(done["Location"])
    assert done["Location"].startswith(RETURN)
    assert parse_qs(back.query)["state"] == ["approved"]
    permission: Any = GrantedPermission.objects.latest("pk")
    proof = permission.evidence
    assert {k: proof[k] for k in ("kind", "approved_by", "capacity", "sign_in_level")} == {
        "kind": "sign_in",
        "approved_by": "p-1",
        "capacity": "director",
        "sign_in_level": "high",
    }
    assert (proof["words_version"], proof["words_hash"]) == (words.version, words.hash)
    assert_refused(decide(row, form_of(page), "approve"), "not_open")


def test_less_is_approved_or_nothing(portal: KeyErp, row: PermissionRequest) -> None:
    form = form_of(opened(row, ticket_for(row, portal)))
    assert_refused(decide(row, form, "less"), "refused")
    wrong = decide(row, form, "less", codes=["documents:cancel"])
    assert "not asked for" in text_of(wrong)
    assert "The last day is no day" in text_of(decide(row, form, "less", codes=[VIEW], until="x"))
    done = decide(row, form, "less", codes=[VIEW], until="2037-06-30")
    assert "The request is approved." in text_of(done)
    permission: Any = GrantedPermission.objects.get()
    assert [code.pk for code in permission.codes.all()] == [VIEW]
    assert permission.valid_until.year == 2037
    other: Any = make.permission_request(tin=row.tin)
    form = form_of(opened(other, ticket_for(other, portal)))
    assert "The request is declined." in text_of(decide(other, form, "decline"))
    other.refresh_from_db()
    assert (other.state, other.evidence["approved_by"]) == ("declined", "p-1")


def test_it_speaks_malay_and_the_hash_is_of_what_was_read(
    portal: KeyErp, row: PermissionRequest
) -> None:
    PermissionRequest.objects.update(replaces=True)
    page = opened(row, ticket_for(row, portal), accept_language="ms-MY,ms;q=0.9")
    assert "menggantikan" in text_of(page)
    assert (page["Content-Language"], 'lang="ms"' in page.content.decode()) == ("ms", True)
    english = Client().post(f"/confirm/{row.pk}", {**form_of(page), "language": "en"})
    assert (english["Content-Language"], "act for" in text_of(english)) == ("en", True)
    again = Client().post(f"/confirm/{row.pk}", {**form_of(english), "language": "ms"})
    decide(row, form_of(again), "approve")
    portals = {"ticket": ticket_for(row, portal), "ui_locales": "ms en"}
    assert Client().get(f"/confirm/{row.pk}", portals)["Content-Language"] == "ms"
    granted: Any = GrantedPermission.objects.get()
    assert granted.evidence["words_version"] == "confirm-1/ms"


TICKETS: list[tuple[dict[str, Any], str]] = [
    ({"sub": None}, "no_person"),
    ({"sub": "a\nb"}, "incomplete_ticket"),
    ({"capacity": None}, "incomplete_ticket"),
    ({"acr": None}, "incomplete_ticket"),
    ({"amr": None}, "incomplete_ticket"),
    ({"taxpayer": "x!"}, "incomplete_ticket"),
    ({"jti": None}, "malformed_ticket"),
    ({"aud": "https://other.example.org"}, "other_audience"),
    ({"request": "01a219cd-9338-7436-8a14-bc06b1a29016"}, "other_request"),
    ({"iat": -360, "exp": -60}, "expired_ticket"),
    ({"iat": -360}, "expired_ticket"),  # however long it says
    ({"exp": 86_400}, "long_ticket"),
    ({"iat": 600, "exp": 700}, "long_ticket"),
]


@pytest.mark.parametrize(("claims", "name"), TICKETS, ids=lambda v: str(v)[:40])
def test_a_wrong_ticket_is_refused_by_name(
    portal: KeyErp, row: Any, claims: dict[str, Any], name: str
) -> None:
    page = opened(row, ticket_for(row, portal, **claims))
    assert_refused(page, name)
    assert row.intermediary.taxpayer.name not in text_of(page)


def test_a_ticket_opens_one_page_once(portal: KeyErp, row: PermissionRequest) -> None:
    ticket = ticket_for(row, portal)
    assert opened(row, ticket).status_code == 200
    assert_refused(opened(row, ticket), "replayed_ticket")
    assert_refused(opened(row, ""), "no_ticket")
    for text in ("x", "a.b.c", ticket + "A" * 5000, ticket.replace(".", ".A", 1)):
        assert_refused(opened(row, text), "malformed_ticket")


def test_it_is_for_the_taxpayer_that_is_asked(portal: KeyErp, row: PermissionRequest) -> None:
    other = make.permission_request(tin=make.taxpayer().tin)
    assert_refused(opened(row, ticket_for(row, portal, taxpayer=other.tin)), "other_taxpayer")
    missing = PermissionRequestFactory.build(tin=row.tin, intermediary=row.intermediary)
    assert_refused(opened(missing, ticket_for(missing, portal)), "unknown_request")
    form = form_of(opened(other, ticket_for(other, portal)))
    assert_refused(decide(row, form, "approve"), "other_request")
    make_late(other)
    assert_refused(decide(other, form, "approve"), "not_open")
    assert not GrantedPermission.objects.exists()


def test_only_a_portal_of_the_authority_makes_tickets(
    portal: KeyErp, row: PermissionRequest
) -> None:
    erp, other = new_key_erp(), with_scopes("RegistryAPI:read")
    for stranger in (erp, other):
        assert_refused(opened(row, ticket_for(row, stranger)), "not_a_portal")
    forged = ticket_for(row, KeyErp(portal.system_user, new_pair(kid=portal.pair.kid)))
    assert_refused(opened(row, forged), "not_a_portal")
    ticket, by = ticket_for(row, portal), Author("x", kind=AuthorKind.OPERATOR)
    block_system_user(system_user=portal.system_user, reason="stolen", by=by, at=now())
    assert_refused(opened(row, ticket), "not_a_portal")


def test_the_form_is_signed_and_valid_for_a_quarter_of_an_hour(
    portal: KeyErp, row: PermissionRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = form_of(opened(row, ticket_for(row, portal)))
    assert_refused(decide(row, {"opened": form["opened"] + "x"}, "approve"), "page_too_old")
    assert_refused(decide(row, {}, "approve"), "page_too_old")
    later = time.time() + OPEN_FOR + 1
    monkeypatch.setattr("time.time", lambda: later)
    assert_refused(decide(row, form, "approve"), "page_too_old")
    assert not GrantedPermission.objects.exists()


def test_without_a_ticket_the_portal_is_asked_for_one(
    row: PermissionRequest, settings: Settings
) -> None:
    settings.PORTAL_URL = "https://portal.example.org/permission-requests"
    answer = Client().get(f"/confirm/{row.pk}")
    assert (answer.status_code, answer["Location"]) == (
        302,
        f"https://portal.example.org/permission-requests?request={row.pk}&kind=permission",
    )
    assert Client().put(f"/confirm/{row.pk}").status_code == 405
