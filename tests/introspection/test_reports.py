"""The log line of an introspection and of a revocation: which request, and how long it took."""

import logging
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tokens.answers.response import Answer
from tokens.operations.introspection import EndedIntrospection, report_introspection
from tokens.operations.revocation import EndedRevocation, report_revocation
from tokens.request.arrival import Arrival

REFERENCE = UUID("01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f")
ARRIVAL = Arrival(REFERENCE, datetime(2026, 3, 1, tzinfo=UTC), "192.0.2.1", "agent")
ANSWER = Answer(200, "OK", {}, b"")
LINE = {
    "reference": str(REFERENCE),
    "client_id": "ci_test_1",
    "login": "a-jti",
    "source_address": "192.0.2.1",
    "milliseconds": 12.35,
}


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def line_of(caplog: pytest.LogCaptureFixture, name: str) -> dict[str, Any]:
    """What the one record of this logger has beside what every record has."""
    (record,) = (record for record in caplog.records if record.name == f"tokens.{name}")
    plain = {*vars(logging.makeLogRecord({})), "message"}
    assert record.getMessage() == name
    return {k: v for k, v in vars(record).items() if k not in plain}


def test_the_line_of_an_introspection(caplog: pytest.LogCaptureFixture) -> None:
    ended = EndedIntrospection("inactive", ANSWER, "ci_test_1", "a-jti", "token_revoked")
    report_introspection(ARRIVAL, ended, 0.0123456)
    expected = LINE | {"outcome": "inactive", "status": "token_revoked"}
    assert line_of(caplog, "introspection") == expected


def test_the_line_of_a_revocation(caplog: pytest.LogCaptureFixture) -> None:
    ended = EndedRevocation("revoked", ANSWER, "ci_test_1", "a-jti")
    report_revocation(ARRIVAL, ended, 0.0123456)
    assert line_of(caplog, "revocation") == LINE | {"outcome": "revoked"}
