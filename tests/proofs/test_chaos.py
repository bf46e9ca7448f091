"""Each broken promise is found, and no other one is blamed."""

import json
from dataclasses import replace
from typing import Any

import jwt
import pytest

from proofs.chaos.answers import Answer, read_answer, without_answer
from proofs.chaos.promises import Forbidden, Observed, Promise, broken_promises

REFERENCE = "01a1fdd5-f5dd-75ca-8cf3-17758c1ac9cb"
HEADERS = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "pragma": "no-cache",
    "correlationid": REFERENCE,
}
TIN = "C1000000001"
TOKEN = jwt.encode({"jti": REFERENCE, "sub": TIN}, "a key of thirty-two bytes for HMAC")
OWN = {"x-represented-taxpayer": TIN}
HELP = {"link": '<https://127.0.0.1:8000/errors/invalid_credentials>; rel="help"'}
ISSUED = {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}
RETRY = {"retry-after": "5"}


def headers_of(status: int) -> dict[str, str]:
    return HEADERS | (OWN if status == 200 else HELP)


def refusal(error: str, end: str = f" Reference: {REFERENCE}") -> dict[str, str]:
    return {"error": error, "error_description": f"No.{end}"}


@pytest.mark.parametrize(
    ("status", "headers", "content"),
    [
        (200, {}, ISSUED),
        (200, {}, ISSUED | {"scope": "InvoicingAPI"}),
        (400, {}, refusal("unauthorised_client")),
        (429, RETRY, refusal("invalid_request")),
        (503, RETRY, refusal("temporarily_unavailable")),
    ],
)
def test_an_answer_of_the_contract_has_no_fault(
    status: int, headers: dict[str, str], content: Any
) -> None:
    sent = json.dumps(content).encode()
    answer = read_answer("a", (1, 2), status, headers_of(status) | headers, sent)
    assert answer.fault == ""
    assert (answer.status, answer.reference, answer.seconds) == (status, REFERENCE, 1)
    assert bool(answer.token) is (status == 200)


@pytest.mark.parametrize(
    ("fault", "status", "headers", "content"),
    [
        ("status 503 and no JSON", 503, RETRY, "<html>"),
        ("status 500", 500, {}, refusal("server_error")),
        (
            "status 400 with error 'temporarily_unavailable'",
            400,
            {},
            refusal("temporarily_unavailable"),
        ),
        ("status 503 without Retry-After", 503, {}, refusal("temporarily_unavailable")),
        ("status 400 with another body", 400, {}, {"error": "invalid_client"}),
        ("the description does not end", 400, {}, refusal("invalid_client", "")),
        ("RFC 6749", 400, {}, refusal("invalid_client", f'" Reference: {REFERENCE}')),
        ("content-type is 'text/html'", 400, {"content-type": "text/html"}, refusal("x")),
        ("cache-control", 200, {"cache-control": "public"}, ISSUED),
        ("correlationId is ''", 200, {"correlationid": ""}, ISSUED),
        ("not the jti", 200, {"correlationid": REFERENCE[:-1] + "0"}, ISSUED),
        ("without token_type", 200, {}, ISSUED | {"expires_in": 60}),
        ("without a token", 200, {}, ISSUED | {"access_token": "x"}),
        ("X-Represented-Taxpayer is ''", 200, {"x-represented-taxpayer": ""}, ISSUED),
        ("X-Represented-Taxpayer is 'C2'", 200, {"x-represented-taxpayer": "C2"}, ISSUED),
        ("Link is ''", 400, {"link": ""}, refusal("invalid_client")),
        ("Link is '/x'", 503, RETRY | {"link": "/x"}, refusal("temporarily_unavailable")),
    ],
)
def test_any_other_answer_is_found(
    fault: str, status: int, headers: dict[str, str], content: Any
) -> None:
    body = content if isinstance(content, str) else json.dumps(content)
    answer = read_answer("a", (1, 2), status, headers_of(status) | headers, body.encode())
    assert fault in answer.fault


def token(caller: str, sent_at: float, reference: str, seconds: float = 0.1) -> Answer:
    return Answer(caller, sent_at, sent_at + seconds, 200, reference, "token")


def refused(caller: str, sent_at: float, status: int = 503, reference: str = "r") -> Answer:
    return Answer(caller, sent_at, sent_at + 0.1, status, reference)


GOOD = Observed(
    answers=[
        token("erp", 1, "a"),
        refused("erp", 11),
        token("erp", 13, "b"),
        refused("bad", 2, 400),
    ],
    honest=frozenset({"erp"}),
    began_at=10,
    ended_at=12,
    issued=frozenset("ab0"),
    new=frozenset("ab"),
    forbidden=[Forbidden("bad", 0), Forbidden("erp", 3, 12)],
)


def also(*answers: Answer) -> Observed:
    return replace(GOOD, answers=[*GOOD.answers, *answers], issued=GOOD.issued | set("cd"))


def test_what_was_kept_is_not_blamed() -> None:
    assert broken_promises(Promise(), GOOD) == []
    assert GOOD.recovery_seconds == 0
    assert GOOD.slowest == pytest.approx(0.1)
    assert GOOD.statuses == {(True, 200): 2, (True, 503): 1, (False, 400): 1}


@pytest.mark.parametrize(
    ("broken", "promise", "seen"),
    [
        (
            "1 tokens without a login event, such as b",
            Promise(),
            replace(GOOD, issued=frozenset("a")),
        ),
        ("1 forbidden tokens of bad, such as c", Promise(), also(token("bad", 5, "c"))),
        ("1 forbidden tokens of erp, such as c", Promise(), also(token("erp", 3, "c"))),
        (
            "not the contract's: no answer: OSError",
            Promise(),
            also(without_answer("x", (1, 2), OSError())),
        ),
        ("an answer after 3.0 s, not within 2 s", Promise(), also(token("erp", 14, "c", 3))),
        (
            "refused for 3.1 s more, not 2 s",
            Promise(),
            also(refused("erp", 15), token("erp", 16, "c")),
        ),
        ("1 logins refused, where none", Promise(may_refuse=False), GOOD),
        (
            "2 logins refused, where none may be: {('erp', 503): 1, ('changing', 503): 1}",
            Promise(may_refuse=False),
            also(refused("changing", 11)),
        ),
        ("honest logins were answered with [400]", Promise(), also(refused("erp", 11, 400))),
        (
            "1 logins stored as issued that got no token, not 0",
            Promise(),
            replace(GOOD, new=frozenset("abc")),
        ),
        ("no honest login before the fault", Promise(), replace(GOOD, began_at=0.5)),
        ("no login after the fault by erp", Promise(), replace(GOOD, ended_at=20)),
    ],
)
def test_each_broken_promise_is_found(broken: str, promise: Promise, seen: Observed) -> None:
    found = broken_promises(promise, seen)
    assert len(found) == 1
    assert broken in found[0]


def test_a_token_that_was_sent_for_before_a_block_or_heard_after_its_end_is_no_fault() -> None:
    seen = also(token("erp", 2.95, "c"), token("erp", 11.95, "d"))
    assert broken_promises(Promise(), seen) == []


def test_a_slow_answer_before_the_fault_is_not_blamed_on_it() -> None:
    assert broken_promises(Promise(), also(token("other", 6, "c", 3.9))) == []
    assert len(broken_promises(Promise(), also(token("other", 6, "c", 4.1)))) == 1


def test_records_that_a_restore_lost_are_not_missed() -> None:
    seen = replace(GOOD, issued=frozenset("b"), lost_until=12)
    assert broken_promises(Promise(), seen) == []


def test_a_login_that_was_told_503_and_is_stored_as_issued_is_named() -> None:
    seen = replace(also(refused("erp", 11, reference="c")), new=frozenset("abc"))
    assert seen.told_unavailable == {"c"}
