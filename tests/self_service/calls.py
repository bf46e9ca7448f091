"""What a client sends to see and end what is its own, and what holds for every answer."""

import re
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from django.test import Client

from tests.support import answers, make
from tests.support.answers import UUID7, body_of, headers_of
from tests.support.erp import Erp

CREDENTIALS, PERMISSIONS = "/api/v1/credentials/current", "/api/v1/permissions"
REVOKE_LAST = f"{CREDENTIALS}?revoke_last=true"
REPRESENTATIVES, STATEMENT = "/api/v1/representatives", "/api/v1/statement"


def call(method: str, path: str, token: str | None, **extra: Any) -> HttpResponse:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    client = Client(raise_request_exception=False)
    return client.generic(method, path, headers=headers, **extra)  # type: ignore[return-value]


def explanation_path(reference: str) -> str:
    return f"/api/v1/logins/{reference}/explanation"


def assert_answer(response: HttpResponse, status: int, allow: str, **more: str) -> dict[str, Any]:
    """The status and all headers; returns the body."""
    assert response.status_code == status, response.content
    assert re.fullmatch(UUID7, response["correlationId"])
    assert headers_of(response) == {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "correlationId": response["correlationId"],
        "Allow": allow,
        **more,
    }
    assert not response.cookies
    return body_of(response)


def assert_error(
    response: HttpResponse, status: int, error: str, says: str, allow: str, **more: str
) -> None:
    answers.assert_error(assert_answer(response, status, allow, **more), error, says)


def second_secret(erp: Erp, **fields: Any) -> Erp:
    secret: Any = make.credential(**{"system_user": erp.system_user, "slot": 2} | fields)
    return Erp(erp.client_id, secret.clear, erp.registered)


def text_of(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
