"""How a protected API answers errors: each status has one code, and nothing else has it."""

import json
from typing import Any

import pytest
from rest_framework.exceptions import APIException

from tokens.resource_server.errors import answer_exception

CODES = {
    401: "invalid_token",
    403: "insufficient_scope",
    404: "not_found",
    409: "conflict",
    500: "server_error",
    503: "temporarily_unavailable",
}


def answer(exception: Exception) -> tuple[int, dict[str, Any]]:
    response = answer_exception(exception, {})
    assert response["Cache-Control"] == "no-store"
    return response.status_code, json.loads(json.dumps(response.data))


@pytest.mark.parametrize("status", range(400, 512))
def test_each_status_has_its_code(status: int) -> None:
    exception = APIException("Because.")
    exception.status_code = status
    expected = {"error": CODES.get(status, "invalid_request"), "error_description": "Because."}
    assert answer(exception) == (status, expected)
