"""Who may use a client's own addresses, and how all others are answered (contract 2)."""

import logging
import threading

import pytest
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from identity.api.framework.view import ManagementView
from taxpayers.services import block_system_user
from tests.introspection.api import claims_of, forged, revoke, token_of
from tests.self_service.calls import (
    CREDENTIALS,
    PERMISSIONS,
    REPRESENTATIVES,
    STATEMENT,
    assert_error,
    call,
    explanation_path,
)
from tests.support.erp import Erp
from tests.support.moments import why
from tests.tokens.test_protected_api import FOREIGN, MISSING
from tokens.self_service.view import SelfServiceView

pytestmark = pytest.mark.django_db

CHALLENGE = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
REQUESTS = "/api/v1/permission-requests"
EXPLANATION = explanation_path("01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f")
ALLOWED = {
    CREDENTIALS: "GET, HEAD, DELETE",
    **dict.fromkeys((PERMISSIONS, REPRESENTATIVES, STATEMENT), "GET, HEAD"),
    REQUESTS: "GET, HEAD, POST",
    EXPLANATION: "POST",
}
CALLS = [
    *(("GET", CREDENTIALS), ("DELETE", CREDENTIALS), ("DELETE", f"{CREDENTIALS}?revoke_last=true")),
    *(("GET", PERMISSIONS), ("POST", EXPLANATION), ("GET", REPRESENTATIVES), ("GET", STATEMENT)),
    *(("GET", REQUESTS), ("POST", REQUESTS)),
]


def allowed(path: str) -> str:
    return ALLOWED[path.partition("?")[0]]


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_without_a_token_of_ours_nothing_opens(method: str, path: str, erp: Erp) -> None:
    for token, says in ((None, MISSING), (forged(token_of(erp)), FOREIGN)):
        answer = call(method, path, token)
        assert_error(answer, 401, "invalid_token", says, allowed(path), **CHALLENGE)


@pytest.mark.parametrize(("method", "path"), CALLS)
@pytest.mark.parametrize("ended", ["blocked", "token revoked"])
def test_a_token_that_is_no_longer_active_is_refused(
    erp: Erp, method: str, path: str, ended: str
) -> None:
    token = token_of(erp)
    if ended == "blocked":
        block_system_user(system_user=erp.system_user, **why())
    else:
        revoke(erp, token)
    answer = call(method, path, token)
    says = "The token is no longer active"
    assert_error(answer, 401, "invalid_token", says, allowed(path), **CHALLENGE)
    assert erp.system_user.credentials.filter(revoked_at=None).exists()


def test_each_call_is_in_the_log_without_the_token(
    erp: Erp, caplog: pytest.LogCaptureFixture
) -> None:
    token = token_of(erp)
    with caplog.at_level(logging.INFO, "tokens.self_service"):
        answer = call("DELETE", CREDENTIALS, token, REMOTE_ADDR="192.0.2.9")
        call("GET", PERMISSIONS, None)
    known, unknown = (vars(r) for r in caplog.records if r.name == "tokens.self_service")
    assert known["reference"] == answer["correlationId"]
    assert (known["operation"], known["status"]) == ("DELETE CredentialsView", 409)
    assert (known["client_id"], known["login"]) == (erp.client_id, claims_of(token)["jti"])
    assert known["source_address"] == "192.0.2.9"
    assert (unknown["client_id"], unknown["status"]) == ("", 401)
    assert not any(token in str(value) for value in known.values())


@pytest.mark.parametrize(("kind", "seconds"), [(SelfServiceView, 1.5), (ManagementView, 10.0)])
def test_an_answer_waits_for_the_database_no_longer_than_it_may(
    kind: type[SelfServiceView] | type[ManagementView], seconds: float
) -> None:
    """That the connection is then shut down is tested in live/test_readiness.py."""

    def show_deadlines(_view: object, _request: Request) -> Response:
        running = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
        return Response([timer.interval for timer in running])

    view = type("View", (kind,), {"permission_classes": (), "get": show_deadlines})
    view.authentication_classes = ()  # type: ignore[attr-defined]
    answer = view.as_view()(APIRequestFactory().get("/"))  # type: ignore[attr-defined]
    assert answer.data == [seconds]
