"""Who may use the management API: only a system user with its scope, and only for itself."""

import logging
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from taxpayers.models import Taxpayer
from taxpayers.services import block_system_user
from tests.dpop.dpop_erp import new_dpop_erp
from tests.introspection.api import claims_of, token_of
from tests.management_api.portal import (
    BASE,
    PROBLEM,
    SCOPES,
    Portal,
    assert_ok,
    assert_problem,
    new_portal,
    send,
)
from tests.support import make
from tests.support.answers import body_of
from tests.support.moments import why
from tests.tokens.test_protected_api import ENDED, FOREIGN
from tokens.dpop.proof import hash_of_token

pytestmark = pytest.mark.django_db
CHALLENGE = 'Bearer error="invalid_token"'
NEW = {"taxpayer": "C2584563222", "name": "Aminah"}


def test_a_token_that_is_no_longer_active_is_refused(portal: Portal) -> None:
    """However else it may end: tests/self_service/test_callers.py."""
    block_system_user(system_user=portal.system_user, **why())
    answer = portal.post("/taxpayers", NEW)
    assert_problem(answer, 401, "invalid_token", ENDED, WWW_Authenticate=CHALLENGE)
    assert not Taxpayer.objects.filter(tin="C2584563222").exists()


def assert_refused(token: str, says: str, scope: str = "", method: str = "POST") -> None:
    answer = send(method, f"{BASE}/taxpayers", token, NEW if method == "POST" else None)
    missing = f', scope="{scope}"' if scope else ""
    challenge = f'Bearer error="insufficient_scope"{missing}'
    assert_problem(answer, 403, "insufficient_scope", says, WWW_Authenticate=challenge)
    assert not Taxpayer.objects.filter(tin="C2584563222").exists()


def test_the_scope_to_log_in_with_is_one_that_the_client_has(settings: Any) -> None:
    whole = new_portal("RegistryAPI RegistryAPI:read", asks_for="RegistryAPI:read")
    assert_refused(whole.token, "Log in with scope=RegistryAPI.", "RegistryAPI")
    reader = new_portal("RegistryAPI:read")
    settings.SCOPES = {name: SCOPES[name] for name in ("RegistryAPI", "RegistryAPI:read")}
    assert_refused(reader.token, "Log in with scope=RegistryAPI.", "RegistryAPI")


def test_a_token_on_behalf_of_another_taxpayer_never_opens_it() -> None:
    role = make.intermediary()
    granted = make.permission(intermediary=role)
    portal = new_portal(taxpayer=role.taxpayer)
    token = token_of(portal.erp, scope="RegistryAPI", on_behalf_of=granted.taxpayer.tin)
    assert claims_of(token)["act"] == {"sub": role.taxpayer.tin}
    for method in ("GET", "POST"):
        assert_refused(token, "A token on behalf of another taxpayer", method=method)
    own = portal.get("/taxpayers", onbehalfof="C9999999999")  # a header of the login only
    assert_ok(own)


def test_a_token_that_other_apis_accept_too_never_opens_it() -> None:
    both = new_portal("InvoicingAPI RegistryAPI")
    assert claims_of(both.token)["aud"] == ["InvoicingAPI", "RegistryAPI"]
    for method in ("GET", "POST"):
        assert_refused(both.token, "Log in only with scope=RegistryAPI.", "RegistryAPI", method)
    assert_ok(
        Portal(both.erp, token_of(both.erp, scope="RegistryAPI")).post("/taxpayers", NEW), 201
    )


def test_where_operators_have_not_added_the_scope_no_token_gets_in(settings: Any) -> None:
    portal = new_portal()
    settings.SCOPES = {"InvoicingAPI": settings.SCOPES["InvoicingAPI"]}
    answer = portal.get("/taxpayers")
    assert_problem(answer, 401, "invalid_token", FOREIGN, WWW_Authenticate=CHALLENGE)


def test_a_request_without_https_is_refused(portal: Portal, settings: Any) -> None:
    token = portal.token
    settings.AUTH_URL = "https://id.example.org"
    settings.TRUSTED_PROXIES = ["127.0.0.1"]
    for scheme, kind in (("http", "insecure_transport"), ("https", "invalid_token")):
        answer = send("GET", f"{BASE}/taxpayers", token, X_Forwarded_Proto=scheme)
        assert body_of(answer)["type"].endswith(f"/{kind}")
        assert answer["Content-Type"] == PROBLEM


def test_a_bound_token_opens_it_with_a_proof_for_the_address_of_staff() -> None:
    erp = new_dpop_erp(scopes="RegistryAPI", nonce=False)
    token = erp.token(scope="RegistryAPI")
    path = f"{BASE}/taxpayers"
    answer = send("GET", path, token)
    assert body_of(answer)["error"] == "invalid_token"
    assert answer["WWW-Authenticate"].startswith('DPoP error="invalid_token"')
    assert settings.STAFF_URL != settings.AUTH_URL
    answers: list[Any] = []
    for base in (settings.STAFF_URL, settings.AUTH_URL):
        proof = erp.proof(htm="GET", htu=f"{base}{path}", ath=hash_of_token(token), nonce=None)
        headers = {"Authorization": f"DPoP {token}", "DPoP": proof}
        answers.append(Client().get(path, headers=headers))
    assert [answer.status_code for answer in answers] == [200, 401]
    assert body_of(answers[1])["error"] == "invalid_dpop_proof"


def test_each_call_is_in_the_log_with_its_path(
    portal: Portal, caplog: pytest.LogCaptureFixture
) -> None:
    """What else is in it, and what is not: tests/self_service/test_callers.py."""
    with caplog.at_level(logging.INFO, "identity.api"):
        answer = portal.post("/taxpayers", NEW)
        send("GET", f"{BASE}/{'x' * 4_000}", None)
    known, long = (vars(r) for r in caplog.records if r.name == "identity.api")
    assert known["reference"] == answer["correlationId"]
    assert (known["operation"], known["status"]) == (f"POST {BASE}/taxpayers", 201)
    assert len(long["operation"]) == 200


def test_another_audience_is_not_enough_for_two_apis(settings: Any) -> None:
    from identity.api.checks import check_scopes

    assert check_scopes() == []
    settings.SCOPES = settings.SCOPES | {
        "RegistryAPI": {"description": "", "audience": "InvoicingAPI"}
    }
    (error,) = check_scopes()
    assert error.id == "api.E001"
    assert "RegistryAPI and InvoicingAPI have the same audience" in error.msg
