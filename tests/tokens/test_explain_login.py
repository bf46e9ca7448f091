"""`explain_login`: every check of a login, and what to do (contract 6)."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.command_line import error_of, json_output_of
from tests.support.erp import Erp
from tests.support.moments import now
from tokens.answers.description import format_moment_with_offset
from tokens.explanation import CheckState, explain
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS, Check, ProtocolReason

pytestmark = pytest.mark.django_db


def explained(reference: str) -> dict[str, Any]:
    return json_output_of("explain_login", reference)


def test_a_granted_login_passed_every_check(erp: Erp) -> None:
    answer = explained(erp.login()["correlationId"])
    assert answer["outcome"] == "issued"
    assert answer["client_id"] == erp.client_id
    states = [check["state"] for check in answer["checks"]]
    assert set(states) == {"passed", "not asked"}
    assert [check["question"] for check in answer["checks"] if check["state"] == "not asked"] == [
        "Its taxpayer is an intermediary",
        "Intermediary active",
        "The taxpayer granted a permission",
        "A permission is valid",
        "System user may use one of the permissions granted",
    ]


@pytest.mark.parametrize(
    ("age", "why", "tell"),
    [
        (timedelta(hours=1), "Logins that a limit refused .429.", "too many logins"),
        (timedelta(days=900), "older ones were deleted", "log in again"),
        (-timedelta(days=1), "a time in the future", "the whole error message"),
        (None, "not a reference of this service", "the whole error message"),
    ],
)
def test_a_reference_without_a_record_is_explained_in_one_line_by_its_time(
    age: timedelta | None, why: str, tell: str, erp: Erp
) -> None:
    oldest = now() - timedelta(days=800)
    LoginEvent.objects.create(pk=first_id(oldest), at=oldest)
    made = now() - age if age is not None else None
    reference = UUID(int=first_id(made).int | (7 << 76) | (1 << 63)) if made else uuid4()
    line = error_of("explain_login", f"Error. Reference: {reference}")
    assert re.search(f"No record: .*{why}.* Tell the caller: .*{tell}", line)
    if made and age and age < timedelta(days=800):
        assert format_moment_with_offset(made)[:16] in line


@pytest.mark.parametrize("reason", sorted(set(REFUSALS) - {ProtocolReason.RATE_LIMITED}))
def test_every_reason_that_is_recorded_fails_exactly_one_check(reason: str) -> None:
    details = {"malformed_credentials": "cut_off", "invalid_dpop_proof": "proof_signature"}
    detail = details.get(reason, "")
    event = LoginEvent(reason=reason, parameter="client_id", detail=detail, at=now())
    failed = [r for r in explain(event).results if r.state is CheckState.FAILED]
    unplanned = {ProtocolReason.TEMPORARILY_UNAVAILABLE, ProtocolReason.SERVER_ERROR}
    assert len(failed) == (0 if reason in unplanned else 1)


def test_where_the_service_failed_no_check_is_called_passed() -> None:
    results = explain(LoginEvent(reason=ProtocolReason.SERVER_ERROR, at=now())).results
    assert [(r.check, r.state) for r in results] == [(c, CheckState.NOT_REACHED) for c in Check]
