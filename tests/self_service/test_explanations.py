"""The checks of a login, for its client (`POST /api/v1/logins/…/explanation`) and for staff."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.http import HttpResponse
from pytest_django.fixtures import Settings

from tests.introspection.api import token_of
from tests.self_service.calls import assert_answer, assert_error, call, explanation_path, text_of
from tests.support import make
from tests.support.answers import body_of
from tests.support.command_line import error_of, json_output_of
from tests.support.erp import Erp, description_of, event_of, new_erp
from tests.support.moments import now
from tokens.answers.description import format_moment_with_offset
from tokens.explanation import CheckState, explain
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS, Check, ProtocolReason

pytestmark = pytest.mark.django_db
NOT_FOUND = "No login of this client has this reference."


def explained(erp: Erp, reference: str, **extra: Any) -> HttpResponse:
    token = extra.pop("token", "") or token_of(erp)
    return call("POST", explanation_path(reference), token, **extra)


def test_the_whole_answer_for_a_refused_login(erp: Erp) -> None:
    refused = erp.login(on_behalf_of="C9999999999")
    reference = refused["correlationId"]
    told = description_of(refused)
    event = event_of(refused)
    body = assert_answer(explained(erp, reference), 200, "POST")
    checks = {check["question"]: check for check in body.pop("checks")}
    when = body["explanation"].partition(" the login was refused: ")
    assert body == {
        "reference": reference,
        "at": text_of(event.at),
        "outcome": "not_an_intermediary",
        "explanation": f"{when[0]} the login was refused: {told}",
        "subject": "C9999999999",
        "actor": erp.tin,
        "scope": None,
        "help": "http://127.0.0.1:8000/errors/not_an_intermediary",
    }
    assert checks["Its taxpayer is an intermediary"] == {
        "question": "Its taxpayer is an intermediary",
        "state": "failed",
        "advice": told,
    }
    assert checks["Client ID and secret correct"]["state"] == "passed"
    assert checks["A permission is valid"]["state"] == "not reached"


def test_it_has_the_words_of_explain_login(intermediary: Erp) -> None:
    permission = make.permission(intermediary=intermediary.role)
    logins = [
        intermediary.login(),
        intermediary.login(on_behalf_of=permission.taxpayer.tin),
        intermediary.login(on_behalf_of="C9999999999"),
        intermediary.login(scope="Unknown"),
        intermediary.login(on_behalf_of="not a TIN"),
    ]
    for login in logins:
        by_staff = json_output_of("explain_login", login["correlationId"])
        body = body_of(explained(intermediary, login["correlationId"]))
        for name in ("reference", "outcome", "explanation", "actor", "scope", "checks"):
            assert body[name] == by_staff[name], name


def test_nothing_that_only_staff_may_see_is_in_it(erp: Erp, settings: Settings) -> None:
    settings.TRUSTED_PROXIES = ["127.0.0.1"]
    sent = {"user-agent": "Agent 47", "x-forwarded-for": "203.0.113.7"}
    login = erp.login(scope="Unknown", headers=sent)
    text = explained(erp, login["correlationId"]).content.decode()
    event = event_of(login)
    assert event.source_address == "203.0.113.7"
    for inside in (event.source_address, "Agent 47", "Unknown", "Scope not allowed"):
        assert inside not in text


def test_another_clients_login_and_an_unknown_one_get_the_same_answer(erp: Erp) -> None:
    other = new_erp(taxpayer=erp.system_user.taxpayer)
    theirs = other.login()["correlationId"]
    answers = [explained(erp, reference) for reference in (theirs, str(uuid4()), "nonsense")]
    for answer in answers:
        assert_error(answer, 404, "not_found", NOT_FOUND, "POST")
    assert len({answer.content for answer in answers}) == 1
    assert explained(other, theirs).status_code == 200


def test_a_login_with_a_wrong_secret_is_explained_without_what_it_asked_for(erp: Erp) -> None:
    """Another program may have sent it: the taxpayer that it named is not shown."""
    login = erp.login(client_secret=new_erp().client_secret, on_behalf_of="C9999999999")
    event = event_of(login)
    assert (event.reason, event.subject) == ("invalid_credentials", "C9999999999")
    answer = explained(erp, login["correlationId"])
    assert body_of(answer)["outcome"] == "invalid_credentials"
    assert body_of(answer)["subject"] is None
    assert "C9999999999" not in answer.content.decode()


def test_the_reference_may_be_pasted_with_the_text_around_it_and_a_body_is_not_read(
    erp: Erp,
) -> None:
    reference, token = erp.login()["correlationId"], token_of(erp)
    for form in ("{}", "Reference:%20{}", "{}.", "%7B{}%7D"):
        for written in (reference, reference.upper(), UUID(reference).hex):
            answer = explained(erp, form.format(written), token=token)
            assert body_of(answer)["reference"] == reference
    for body in (b"{", b"\xff\x00", b"x" * 60_000, b'{"reference": "other"}'):
        sent = {"data": body, "content_type": "application/json; charset=idna"}
        answer = explained(erp, reference, token=token, **sent)
        assert body_of(answer)["reference"] == reference


# --- To staff: the command explain_login ----------------------------------------------------------


def test_a_granted_login_passed_every_check(erp: Erp) -> None:
    answer = json_output_of("explain_login", erp.login()["correlationId"])
    assert answer["outcome"] == "issued"
    assert answer["client_id"] == erp.client_id
    assert {check["state"] for check in answer["checks"]} == {"passed", "not asked"}
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
