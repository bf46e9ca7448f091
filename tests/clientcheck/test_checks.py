"""The client check finds each fault of an ERP system, and none in one that does all right."""

import json
from functools import cache

import pytest

from clientcheck.clientcheck import (
    FAIL,
    NEW_SECRET,
    OWN,
    PASS,
    SECRET,
    Authority,
    Fault,
    Finding,
    Login,
    as_html,
    as_json,
    as_text,
    check,
)
from tests.clientcheck import sample_erp as samples
from tests.clientcheck.sample_erp import GoodErp

HALF_AN_HOUR = 1800.0


@cache
def findings_of(erp: type[GoodErp]) -> list[Finding]:
    """What is found of it in half an hour: the same each time."""
    sample = erp(Authority())
    sample.work(HALF_AN_HOUR)
    return check(sample.authority, "\n".join(sample.log))


def test_a_good_client_passes_every_check() -> None:
    assert [f for f in findings_of(GoodErp) if f.state != PASS] == []


FAULTS = [
    (samples.LogsInForEachCall, "a token is used for many calls"),
    (samples.OneTokenForAll, "each call has the token of its taxpayer"),
    (samples.ForgetsOnBehalfOf, "each call has the token of its taxpayer"),
    (samples.StaleOnBehalfOf, "each call has the token of its taxpayer"),
    (samples.MisspellsOnBehalfOf, "the header onbehalfof is right"),
    (samples.RenewsTooLate, "logs in again before the token expires"),
    (samples.RenewsAtTheSameMoment, "renews at another moment each time"),
    (samples.WaitsForTheLogin, "keeps its token while the service is away"),
    (samples.IgnoresA401, "logs in again after a 401"),
    (samples.IgnoresRetryAfter, "waits as long as Retry-After says"),
    (samples.NeverWaitsLonger, "waits longer after each 503"),
    (samples.HammersAfterA503, "waits longer after each 503"),
    (samples.HasNoRandomPart, "its pauses have a random part"),
    (samples.TrustsTheClockOfTheToken, "does not trust the clock of the token"),
    (samples.IsImpatient, "waits for a slow answer"),
    (samples.FloodsAfterACut, "tries again after a cut connection"),
    (samples.RepeatsWhatWasRefused, "stops after a refusal that only people can solve"),
    (samples.SecretInTheUrl, "no secret in a URL"),
    (samples.SendsJson, "the request has the right form"),
    (samples.LogsItsSecret, "logs no secret and no token"),
    (samples.ThrowsTheErrorAway, "logs the reference of a refusal"),
]


# What follows from the fault, beside the fault itself.
ALSO = {
    samples.LogsInForEachCall: {
        *("does not trust the clock of the token", "logs in again after a 401"),
        "keeps its token while the service is away",
    },
    samples.HasNoRandomPart: {"keeps its token while the service is away"},
    samples.SecretInTheUrl: {"the request has the right form"},
    # Three taxpayers log in as one: their logins look like those of one.
    samples.ForgetsOnBehalfOf: {"a token is used for many calls", "waits longer after each 503"},
    samples.StaleOnBehalfOf: {"waits longer after each 503"},
    samples.FloodsAfterACut: {"keeps its token while the service is away"},
}


@pytest.mark.parametrize(("erp", "name"), FAULTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_fault_is_found_and_nothing_else_is_called_one(erp: type[GoodErp], name: str) -> None:
    findings = findings_of(erp)  # type: ignore[arg-type]  # a class can be hashed
    failed = {finding.name: finding for finding in findings if finding.state == FAIL}
    assert failed[name].seen
    assert failed[name].advice
    assert failed.keys() - {name} <= ALSO.get(erp, set())
    text = json.dumps(as_json(findings))
    assert not any(hidden in text for hidden in (SECRET, NEW_SECRET, "eyJ"))


def test_a_report_says_the_same_in_every_form() -> None:
    findings = list(findings_of(samples.IgnoresRetryAfter))
    data = as_json(findings)
    assert data["counts"][FAIL] == 1
    assert [check["name"] for check in data["checks"]] == [f.name for f in findings]
    for text in (as_text(findings), as_html(findings)):
        assert all(f.name in text and f.seen in text for f in findings)
    assert as_text(findings).startswith("FAIL      waits as long as Retry-After says")
    hostile = as_html([Finding(*["<script>alert('1')</script>"] * 4)])
    assert "<script" not in hostile
    assert hostile.count("&lt;script&gt;") == 4


def test_full_jitter_is_no_fault_and_pauses_that_stay_alike_are() -> None:
    for pauses, passes in (([9.1, 5.2, 14.0], True), ([5.1, 7.9], True), ([5.0, 5.1, 5.2], False)):
        authority, at = Authority(), 0.0
        for pause in (*pauses, 0.0):
            authority.logins.append(Login(at, OWN, fault=Fault.DOWN if pause else ""))
            at += pause
        states = {finding.name: finding.state for finding in check(authority)}
        assert (states["waits longer after each 503"] == PASS) is passes, pauses


def test_a_third_login_within_a_second_after_a_cut_is_a_fault() -> None:
    for count, fails in ((2, False), (3, True)):
        authority = Authority()
        authority.logins += [Login(9.0, OWN, fault=Fault.CUT), *[Login(9.5, OWN)] * count]
        states = {finding.name: finding.state for finding in check(authority)}
        assert (states["tries again after a cut connection"] == FAIL) is fails


@pytest.mark.parametrize("secret", [SECRET, NEW_SECRET])
def test_each_secret_is_found_in_a_log(secret: str) -> None:
    assert check(Authority(), f"sent {secret}")[-1].state == FAIL
