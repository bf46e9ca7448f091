"""A protected API: which tokens it accepts, and the whole 401 and 403 for others (contract 2)."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.http import HttpResponse
from django.test import Client
from msgspec.structs import replace
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Taxpayer
from taxpayers.rules import Authorization
from tests.introspection.api import claims_of, forged, token_of
from tests.support import make
from tests.support.answers import body_of, headers_of
from tests.support.erp import Erp
from tests.support.moments import now
from tests.support.outages import database_out_of_reach
from tokens.access_tokens.issuing import issue_access_token

pytestmark = pytest.mark.django_db

JTI = "01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f"
FOREIGN = (
    "The token was not issued by this service, or was changed on the way, or belongs to the other"
    " environment. Log in again."
)
ENDED = (
    "The token is no longer active: its client has ended it, or what it came from has changed."
    " Log in again; if the login is refused, its answer says why."
)
MALFORMED = "The header Authorization must be Bearer and one token. Send it once."
MISSING = "No access token was sent. Send the header Authorization: Bearer, followed by a token."


def new_token(**changes: Any) -> str:
    """Of a login that is not recorded."""
    login = Authorization(
        client_id="ci_test_1",
        subject=TaxpayerId("C2584563222", "202001234567"),
        actor=None,
        scopes=("InvoicingAPI",),
        asked_scopes=None,
        permissions=(),
        at=now(),
    )
    return issue_access_token(replace(login, **changes), jti=JTI, status_index=0).encoded


def get(header: str | None = None, *, method: str = "GET", **headers: str) -> HttpResponse:
    if header is not None:
        headers["authorization"] = header
    client = Client(raise_request_exception=False)
    return client.generic(method, "/api/v1/me", headers=headers)  # type: ignore[return-value]


def assert_401(response: HttpResponse, description: str) -> None:
    assert response.status_code == 401
    assert headers_of(response) == {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "WWW-Authenticate": 'Bearer error="invalid_token"',
        "Allow": "GET, HEAD",
    }
    assert body_of(response) == {"error": "invalid_token", "error_description": description}


def test_a_taxpayer_sees_itself_without_limits(erp: Erp) -> None:
    Taxpayer.objects.update(tin="C2584563222", rob="202001234567")
    token = token_of(erp)
    at = datetime.fromtimestamp(claims_of(token)["iat"], UTC)
    response = get(f"Bearer {token}", accept="text/html")
    assert response.status_code == 200
    assert headers_of(response) == {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "Allow": "GET, HEAD",
    }
    assert body_of(response) == {
        "subject": "C2584563222:202001234567",
        "taxpayer": {"tin": "C2584563222", "rob": "202001234567"},
        "actor": None,
        "client_id": erp.client_id,
        "scopes": ["InvoicingAPI"],
        "permissions": None,
        "issued_at": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "expires_at": f"{at + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}",
        "environment": "test",
    }


@pytest.mark.parametrize("codes", [[], ["documents:submit", "documents:view"]])
def test_an_intermediary_sees_which_taxpayer_it_acts_for_and_what_it_may_do(
    intermediary: Erp, codes: list[str]
) -> None:
    tin = make.permission(intermediary=intermediary.role, codes=codes).taxpayer.tin
    body = body_of(get(f"Bearer {token_of(intermediary, on_behalf_of=tin)}"))
    assert (body["subject"], body["taxpayer"]) == (tin, {"tin": tin})
    assert body["actor"] == intermediary.tin
    assert body["permissions"] == codes  # not null, if there are none


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_written_in_any_case(erp: Erp, scheme: str) -> None:
    assert get(f"{scheme} {token_of(erp)}").status_code == 200


def test_a_token_whose_login_is_not_recorded_is_refused() -> None:
    assert_401(get(f"Bearer {new_token()}"), ENDED)


def test_a_token_that_is_not_ours_is_refused() -> None:
    """Each kind of them: tests/tokens/test_access_tokens.py."""
    assert_401(get(f"Bearer {forged(new_token())}", accept="text/html"), FOREIGN)


@pytest.mark.parametrize(
    ("header", "description"),
    [
        (None, MISSING),
        ("", MISSING),
        ("Basic Y2k6Y3M=", MISSING),
        ("Bearer", MALFORMED),
        ("Bearer{token}", MALFORMED),
        ("Bearer {token} {token}", MALFORMED),
        ("Bearer {token},Bearer {token}", MALFORMED),
        ("Bearer {token}, Bearer {token}", MALFORMED),
        ("Bearer\t{token}", MALFORMED),
        ("Bearer t\u00f6ken", MALFORMED),
        ("Bearer " + "a" * 30_000, FOREIGN),
    ],
)
def test_a_header_without_one_token_is_refused(header: str | None, description: str) -> None:
    assert_401(get(header and header.replace("{token}", new_token())), description)


def test_a_token_outside_the_header_is_ignored() -> None:
    path = f"/api/v1/me?access_token={new_token()}"
    assert_401(Client().get(path), MISSING)  # type: ignore[arg-type]


@pytest.mark.parametrize("is_known", [False, True], ids=["its keys", "the status of a token"])
def test_what_cannot_be_read_is_a_503_in_json(erp: Erp, is_known: bool) -> None:
    token = token_of(erp) if is_known else "a.b.c"
    with database_out_of_reach():
        response = get(f"Bearer {token}")
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert body_of(response)["error"] == "temporarily_unavailable"


def answer_to(raised: Exception) -> Any:
    class Failing(APIView):
        authentication_classes = permission_classes = ()

        def get(self, request: Request) -> Response:
            raise raised

    return Failing.as_view()(APIRequestFactory().get("/"))


@pytest.mark.parametrize(
    ("raised", "status", "error"),
    [
        (RuntimeError("an internal detail"), 500, "server_error"),
        (OperationalError("connection to 10.1.2.3 failed"), 503, "temporarily_unavailable"),
        (ValidationError({"field": ["is wrong"]}), 400, "invalid_request"),
        (ValidationError(["is wrong"]), 400, "invalid_request"),
    ],
)
def test_every_exception_of_a_view_is_answered_in_json_without_internal_details(
    raised: Exception, status: int, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = answer_to(raised)
    body = body_of(response.render())
    assert (response.status_code, response["Content-Type"]) == (status, "application/json")
    assert (set(body), body["error"]) == ({"error", "error_description"}, error)
    assert not re.search(r"detail|10\.1\.2\.3", body["error_description"])
    logged = [(record.message, record.exc_info and record.exc_info[1]) for record in caplog.records]
    assert logged == ([("protected API failed", raised)] if status >= 500 else [])


def test_what_a_view_wrote_before_it_failed_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Django runs each request in a transaction: the answer is made inside of it."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    with transaction.atomic():
        assert answer_to(RuntimeError()).status_code == 500
        assert transaction.get_rollback()


def test_a_description_has_only_the_characters_that_rfc_6750_allows() -> None:
    response = answer_to(ValidationError({"detail": 'Caf\u00e9 "x"\\\n'}))
    assert "Caf? 'x'??" in body_of(response.render())["error_description"]
