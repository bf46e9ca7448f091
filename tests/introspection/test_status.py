"""Is a token still active, and which reason comes first? Who is told 401? Pure."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from taxpayers.facts.values import Facts
from tests.endpoint.test_rules import AT, CLIENT, OTHER, OWN, PERMISSION, REPRESENTED, SECRET
from tokens.access_tokens.status import TokenFacts, status_of
from tokens.access_tokens.verification import AccessToken

SCOPES = ("InvoicingAPI", "ReportingAPI", "Other")
OWN_FACTS = Facts(CLIENT, SECRET)
ON_BEHALF = Facts(CLIENT, SECRET, REPRESENTED)
TOKEN = AccessToken(
    subject=OWN,
    actor=None,
    client_id=CLIENT.client_id,
    jti="a-jti",
    scopes=("InvoicingAPI",),
    permissions=(),
    issued_at=AT,
    expires_at=AT + timedelta(hours=1),
)
FOR_OTHER = replace(TOKEN, subject=OTHER, actor=str(OWN), permissions=("documents:view",))


def status(token: AccessToken, login: Facts | None, **facts: bool) -> str:
    known = TokenFacts(login, **({"has_index": True} | facts))
    return status_of(token, known, known_scopes=SCOPES, at=AT)


def client(**changes: Any) -> Facts:
    return replace(OWN_FACTS, client=replace(CLIENT, **changes))


def granted(*codes: str) -> Facts:
    permission = replace(PERMISSION, codes=codes)
    return replace(ON_BEHALF, represented=replace(REPRESENTED, permissions=(permission,)))


@pytest.mark.parametrize(
    ("token", "login"),
    [
        (TOKEN, OWN_FACTS),
        (replace(TOKEN, scopes=("InvoicingAPI", "ReportingAPI")), OWN_FACTS),
        (FOR_OTHER, ON_BEHALF),
        (FOR_OTHER, granted("documents:view")),
        (replace(FOR_OTHER, permissions=()), ON_BEHALF),
        (replace(FOR_OTHER, permissions=("documents:submit", "documents:view")), ON_BEHALF),
    ],
)
def test_a_token_is_active_as_long_as_its_login_would_get_it(
    token: AccessToken, login: Facts
) -> None:
    assert status(token, login) == "active"


@pytest.mark.parametrize(
    ("token", "login", "reason"),
    [
        (TOKEN, None, "login_not_recorded"),
        (TOKEN, client(blocked_at=AT), "system_user_blocked"),
        (TOKEN, client(client_id="ci_test_y"), "client_or_taxpayer_differs"),
        (replace(TOKEN, subject=OTHER), OWN_FACTS, "client_or_taxpayer_differs"),
        (replace(TOKEN, actor=str(OWN)), OWN_FACTS, "client_or_taxpayer_differs"),
        (replace(FOR_OTHER, actor=None), ON_BEHALF, "client_or_taxpayer_differs"),
        (replace(FOR_OTHER, actor="D1"), ON_BEHALF, "client_or_taxpayer_differs"),
        (
            replace(TOKEN, scopes=("InvoicingAPI", "ReportingAPI")),
            client(scopes=("InvoicingAPI",)),
            "scope_ended",
        ),
        (FOR_OTHER, granted("documents:submit"), "permission_ended"),
        (
            replace(FOR_OTHER, permissions=("documents:submit", "documents:view")),
            granted("documents:view"),
            "permission_ended",
        ),
    ],
)
def test_each_reason_why_it_is_not(token: AccessToken, login: Facts | None, reason: str) -> None:
    assert status(token, login) == reason


def test_a_revoked_token_and_a_compromised_key_are_named_before_the_registry() -> None:
    blocked = client(blocked_at=AT)
    assert status(TOKEN, blocked, is_revoked=True, key_is_compromised=True) == "token_revoked"
    assert status(TOKEN, blocked, key_is_compromised=True) == "signing_key_compromised"
    assert status(TOKEN, OWN_FACTS, is_revoked=True) == "token_revoked"
    assert status(TOKEN, None, is_revoked=True) == "login_not_recorded"


def test_what_once_ended_a_token_is_named_after_what_refuses_it_now() -> None:
    assert status(TOKEN, OWN_FACTS, has_index=False) == "token_ended"
    assert status(TOKEN, client(blocked_at=AT), has_index=False) == "system_user_blocked"
