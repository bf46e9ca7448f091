"""A login that is granted: its answer, claims and record; and the time of one that is not."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode
from uuid import UUID

import jwt
import pytest
from django.db import connection
from django.test import RequestFactory
from pytest_django.fixtures import Settings

from taxpayers.credentials import new_client_id, new_client_secret
from tests.support import make
from tests.support.erp import FORM, PATH, Erp, assert_every_answer, claims_of, new_erp
from tests.support.queries import calls_of, statements_sent
from tokens.models import LoginEvent
from tokens.operations.node import this_node
from tokens.operations.view import token_view

pytestmark = pytest.mark.django_db


def test_a_taxpayer_login_gives_a_token_and_nothing_else(erp: Erp) -> None:
    response = erp.login(scope="InvoicingAPI")
    assert_every_answer(response)
    assert (response.status_code, response.reason_phrase) == (200, "OK")
    body = json.loads(response.content)
    header, claims = jwt.get_unverified_header(body.pop("access_token")), claims_of(response)
    assert (header["typ"], header["alg"]) == ("at+jwt", "ES256")
    assert (claims["iss"], claims["sub"]) == ("http://127.0.0.1:8000", erp.tin)
    assert (claims["client_id"], claims["jti"]) == (erp.client_id, response["correlationId"])
    assert abs(claims["iat"] - datetime.now(UTC).timestamp()) < 5
    assert body == {"token_type": "Bearer", "expires_in": 3600}
    assert type(body["expires_in"]) is int
    assert response["X-Rate-Limit-Limit"] == "12"
    assert response["X-Rate-Limit-Remaining"] == "11"
    expires = datetime.fromisoformat(response["X-Client-Secret-Expires-At"])
    assert expires == erp.system_user.credentials.get().expires_at.replace(microsecond=0)


def test_a_tin_alone_names_the_taxpayer_without_a_rob(intermediary: Erp) -> None:
    role = intermediary.role
    make.permission(taxpayer=make.taxpayer(tin="C7777777777", rob="20200"), intermediary=role)
    assert intermediary.login(on_behalf_of="C7777777777").status_code == 400
    make.permission(taxpayer=make.taxpayer(tin="C7777777777", rob=""), intermediary=role)
    assert claims_of(intermediary.login(on_behalf_of="C7777777777"))["sub"] == "C7777777777"


def test_scope_is_told_when_it_differs_from_what_was_asked(settings: Settings) -> None:
    """When it does: tests/rules/test_every_permission.py."""
    settings.SCOPES = {name: {"description": "d", "audience": name} for name in ("A", "B")}
    erp = new_erp(scopes="A B")
    for asked, granted, told in ((None, "A B", "A B"), ("B", "B", None)):
        response = erp.login(scope=asked)
        assert claims_of(response)["scope"] == granted
        assert json.loads(response.content).get("scope") == told


@pytest.mark.parametrize(
    "name", ["authorization", "client", "login", "scopes", "user", "claims", "validator_log"]
)
def test_a_form_field_named_like_something_of_ours_changes_nothing(erp: Erp, name: str) -> None:
    assert claims_of(erp.login(**{name: "evil"}))["sub"] == erp.system_user.taxpayer.tin


def test_one_event_per_login_with_all_that_is_known(intermediary: Erp) -> None:
    represented = make.permission(intermediary=intermediary.role).taxpayer
    response = intermediary.login(
        on_behalf_of=str(represented.identifier), headers={"User-Agent": "ERP/1.0"}
    )
    event = LoginEvent.objects.get()
    token = json.loads(response.content)["access_token"]
    assert event.id == event.jti == UUID(response["correlationId"])
    assert abs(event.at - datetime.now(UTC)) < timedelta(seconds=5)
    assert (event.reason, event.detail) == ("", "")
    assert event.client_id == intermediary.client_id
    assert event.system_user_id == intermediary.system_user.id
    assert event.secret_id == intermediary.system_user.credentials.get().id
    assert event.subject == str(represented.identifier)
    assert event.actor == intermediary.tin
    assert event.scope == "InvoicingAPI"
    assert event.kid == jwt.get_unverified_header(token)["kid"]
    assert (event.source_address, event.user_agent) == ("127.0.0.1", "ERP/1.0")


# A login on SQLite: in one transaction the counter is read and saved.
ON_SQLITE = ["SAVEPOINT", "SELECT", "UPDATE", "INSERT", "RELEASE"]


def test_the_first_login_of_a_client_on_a_node_takes_two_queries_and_every_other_one(
    intermediary: Erp, settings: Settings, tmp_path: Path
) -> None:
    new_erp().login()  # the first login of a process also reads the signing keys
    represented = make.permission(intermediary=intermediary.role).taxpayer
    is_postgresql = connection.vendor == "postgresql"
    first, other = (
        (["SELECT", "WITH"], ["WITH"]) if is_postgresql else (["SELECT", *ON_SQLITE], ON_SQLITE)
    )
    for number, on_behalf_of in enumerate((None, str(represented.identifier))):
        with statements_sent() as sent:
            assert intermediary.login(on_behalf_of=on_behalf_of).status_code == 200
        # The first token for a taxpayer gets an index that the process has reserved; a new process
        # reserves some with it.
        if is_postgresql:
            assert sent == (["SELECT", "WITH", "WITH"] if number else first)
        else:
            assert sent[-len(ON_SQLITE) :] == ON_SQLITE
        this_node.cache_clear()
        settings.LOCAL_FACTS_DIR = tmp_path / str(number)
        for expected in (first, other, other):
            with statements_sent() as sent:
                assert intermediary.login(on_behalf_of=on_behalf_of).status_code == 200
            assert sent == expected


def refused(client_id: str) -> None:
    body = urlencode(Erp(client_id, new_client_secret("test")).form)
    response = token_view(RequestFactory().post(PATH, body, content_type=FORM))
    assert b"client_id or client_secret is wrong" in response.content


def test_an_unknown_id_and_a_wrong_secret_take_the_same_time() -> None:
    """Each hash and each query that only one of the two pays for is a call more."""
    known = min(calls_of(refused, new_erp().client_id) for _ in range(3))
    assert known == min(calls_of(refused, new_client_id("test")) for _ in range(3))
