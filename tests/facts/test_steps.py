"""The steps of a login, driven by hand: what each asks of the database, in which order. Pure."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.db import DatabaseError, InterfaceError, OperationalError
from msgspec.structs import replace
from oauthlib.common import Request

from taxpayers.credentials import hash_secret, new_client_id, new_client_secret
from taxpayers.facts.values import (
    Facts,
    FactsQuery,
    PermissionFacts,
    Reading,
    RepresentedFacts,
    StatusFacts,
)
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import Refused
from tests.endpoint.test_rules import CLIENT, SECRET
from tests.support.erp import FORM
from tokens.calls import Call, CountedLogin, FailedLogin, RejectedRequest, TakenIndex
from tokens.keys import signer
from tokens.keys.ring import Key, KeyRing, generate
from tokens.operations import toolkit
from tokens.operations.login import EndedLogin, Steps, log_in
from tokens.operations.node import Node
from tokens.operations.recording import unreadable_call
from tokens.operations.steps import LockedRead, advance, fail
from tokens.rate_limits.quota import Quota
from tokens.rate_limits.throttle import DenialCache, Throttle
from tokens.refusals.table import ProtocolReason
from tokens.request.arrival import Arrival, receive
from tokens.request.token_request import UnreadableRequest

DAY = timedelta(days=1)
NOW = datetime.now(UTC)
CLIENT_ID, CLIENT_SECRET = new_client_id("test"), new_client_secret("test")
OTHER = TaxpayerId("C2000000002")

LIVE = Facts(
    replace(CLIENT, id=41, client_id=CLIENT_ID, scopes=("InvoicingAPI",)),
    replace(SECRET, id=51, expires_at=NOW + DAY),
    epoch=7,
    status=StatusFacts(61, 7, ("InvoicingAPI",)),
)
BLOCKED = replace(LIVE, client=replace(LIVE.client, blocked_at=NOW), epoch=8)
REVOKED = replace(LIVE, credential=replace(LIVE.credential, revoked_at=NOW), epoch=8)
EXPIRED = replace(LIVE, credential=replace(LIVE.credential, expires_at=NOW - DAY), epoch=8)
PERMISSION = PermissionFacts(("documents:submit",), NOW - DAY, None, None)
GRANTED = replace(
    LIVE,
    represented=RepresentedFacts(OTHER, True, (PERMISSION,)),
    status=StatusFacts(62, 7, ("InvoicingAPI",), PERMISSION.codes),
)
NOT_GRANTED = replace(LIVE, represented=RepresentedFacts(OTHER, True))


class Memory:
    """What a node knows: these facts of this client with this secret, whomever it acts for."""

    def __init__(self, facts: Facts | None) -> None:
        self.facts = facts

    def find(self, query: FactsQuery) -> Facts | None:
        is_known = (query.client_id, query.lookup) == (CLIENT_ID, hash_secret(CLIENT_SECRET))
        return self.facts if is_known else None

    def store(self, query: FactsQuery, facts: Facts) -> None:
        self.facts = facts


@dataclass(frozen=True)
class Registry:
    """A result of a read: what the registry holds now, and how many logins the window has."""

    facts: Facts | None
    used: int = 0

    def read(self) -> Reading:
        now = datetime.now(UTC)
        return Reading(now, self.facts, None if self.facts is None else (now, self.used))


RIGHT = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
WRONG = {"client_secret": new_client_secret("test")}
STORED = Quota(12, 1, NOW)
NOT_CONFIRMED = NO_PAUSE = None
PAUSE = Throttle(NOW + timedelta(hours=1))


@dataclass(frozen=True)
class Case:
    """A login on a node that knows this, and what the database answers to each of its calls."""

    claim: str
    known: Facts | None
    results: Sequence[Any]
    calls: str
    outcome: str
    status: int
    form: dict[str, str] = field(default_factory=dict)
    on_behalf_of: str = ""
    reserved: tuple[int, ...] = ()  # indexes in the status lists

    def begin(self, address: str = "192.0.2.1") -> tuple[Node, Arrival, Steps]:
        node = Node(Memory(self.known))
        node.reserved_indexes.add(TakenIndex(None, self.reserved))
        meta = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": FORM, "REMOTE_ADDR": address}
        if self.on_behalf_of:
            meta["HTTP_ONBEHALFOF"] = self.on_behalf_of
        arrival, raw = receive(meta, urlencode(RIGHT | self.form).encode(), node.clock.now())
        return node, arrival, log_in(node, arrival, raw)


def drive(steps: Steps, results: Sequence[Any]) -> tuple[list[Call | LockedRead], EndedLogin]:
    """The calls, which get these results, and the end; an exception is what a call fails with."""
    step, calls = advance(steps), []
    for result in results:
        assert not isinstance(step, EndedLogin), f"ended before {result}: {step}"
        calls.append(step)
        if isinstance(result, Exception):
            step = fail(steps, result)
        else:
            step = advance(steps, result.read() if isinstance(result, Registry) else result)
    assert isinstance(step, EndedLogin), step
    return calls, step


def names(calls: Sequence[object]) -> str:
    return " ".join(type(call).__name__ for call in calls)


READ, COUNT, FAIL, LOCK = "FactsQuery", "CountedLogin", "FailedLogin", "LockedRead"
REJECT, TAKE, END = "RejectedRequest", "TakeStatusIndex", "TokenRevocation"
NEW, ENDED = replace(LIVE, status=None), None
TAKEN, BEING_CHANGED = TakenIndex(LIVE.status), TakenIndex(None)
WIDER = replace(LIVE, status=StatusFacts(61, 7, ("InvoicingAPI", "Former")))
MORE = replace(GRANTED, status=StatusFacts(62, 7, ("InvoicingAPI",)))
CASES = [
    # Granted.
    Case("a client that this node knows", LIVE, [STORED], COUNT, "issued", 200),
    Case("a client that it does not know", None, [Registry(LIVE), STORED], f"{READ} {COUNT}",
         "issued", 200),
    Case("an intermediary that it knows", GRANTED, [STORED], COUNT, "issued", 200,
         on_behalf_of=str(OTHER)),
    Case("an intermediary that it does not know", None, [Registry(GRANTED), STORED],
         f"{READ} {COUNT}", "issued", 200, on_behalf_of=str(OTHER)),
    # The index in the status lists.
    Case("its first login", None, [Registry(NEW), TAKEN, STORED], f"{READ} {TAKE} {COUNT}",
         "issued", 200),
    Case("its first login, and it was read before", NEW,
         [Registry(NEW), TAKEN, STORED], f"{READ} {TAKE} {COUNT}", "issued", 200),
    Case("its first login, with an index in reserve", None, [Registry(NEW), STORED],
         f"{READ} {COUNT}", "issued", 200, reserved=(61,)),
    Case("its first login, and another one has given it an index", None,
         [Registry(NEW), NOT_CONFIRMED, Registry(LIVE), STORED],
         f"{READ} {COUNT} {READ} {COUNT}", "issued", 200, reserved=(61, 62)),
    Case("its first login, and the one in reserve is not free", None,
         [Registry(NEW), NOT_CONFIRMED, Registry(NEW), TAKEN, STORED],
         f"{READ} {COUNT} {READ} {TAKE} {COUNT}", "issued", 200, reserved=(61, 62)),
    Case("its first login, with one in reserve, over its limit", None, [Registry(NEW, 12)], READ,
         "rate_limited", 429, reserved=(61,)),
    Case("its first login, over its limit", None, [Registry(NEW, 12)], READ, "rate_limited", 429),
    Case("its first login, over its limit, and it was read before", NEW, [Registry(NEW, 12)], READ,
         "rate_limited", 429),
    Case("its first token that may do more", MORE,
         [Registry(MORE), TakenIndex(GRANTED.status), STORED], f"{READ} {TAKE} {COUNT}", "issued",
         200, on_behalf_of=str(OTHER)),
    Case("its index is of tokens that may do more than it may", WIDER,
         [Registry(WIDER), ENDED, Registry(NEW), TAKEN, STORED],
         f"{READ} {END} {READ} {TAKE} {COUNT}", "issued", 200),
    Case("it gets one that is about to end", None,
         [Registry(NEW), TakenIndex(WIDER.status), ENDED, Registry(NEW), TAKEN, STORED],
         f"{READ} {TAKE} {END} {READ} {TAKE} {COUNT}", "issued", 200),
    Case("it is being changed whenever it takes one, until it is locked", None,
         [*3 * [Registry(NEW), BEING_CHANGED], Registry(NEW), TAKEN, Registry(LIVE), STORED],
         f"{3 * f'{READ} {TAKE} '}{LOCK} {TAKE} {LOCK} {COUNT}", "issued", 200),
    Case("its index ends while it is confirmed", LIVE,
         [NOT_CONFIRMED, Registry(NEW), TAKEN, STORED], f"{COUNT} {READ} {TAKE} {COUNT}",
         "issued", 200),
    Case("it has no index when it is locked", LIVE,
         [NOT_CONFIRMED, Registry(LIVE), NOT_CONFIRMED, Registry(LIVE), NOT_CONFIRMED,
          Registry(NEW), TAKEN, Registry(LIVE), STORED],
         f"{COUNT} {READ} {COUNT} {READ} {COUNT} {LOCK} {TAKE} {LOCK} {COUNT}", "issued", 200),
    # Refused after the secret matched.
    Case("a blocked client that it knows", BLOCKED, [STORED], COUNT, "system_user_blocked", 400),
    Case("a blocked client that it does not know", None, [Registry(BLOCKED), STORED],
         f"{READ} {COUNT}", "system_user_blocked", 400),
    Case("an unknown scope", LIVE, [STORED], COUNT, "invalid_scope", 400, {"scope": "Unknown"}),
    Case("an intermediary without a permission", NOT_GRANTED, [STORED], COUNT, "no_permission",
         400, on_behalf_of=str(OTHER)),
    # Facts that are out of date.
    Case("it was blocked since", LIVE, [NOT_CONFIRMED, Registry(BLOCKED), STORED],
         f"{COUNT} {READ} {COUNT}", "system_user_blocked", 400),
    Case("it is blocked no longer", BLOCKED, [NOT_CONFIRMED, Registry(LIVE), STORED],
         f"{COUNT} {READ} {COUNT}", "issued", 200),
    Case("a permission was granted since", NOT_GRANTED, [NOT_CONFIRMED, Registry(GRANTED), STORED],
         f"{COUNT} {READ} {COUNT}", "issued", 200, on_behalf_of=str(OTHER)),
    Case("its secret was revoked since", LIVE, [NOT_CONFIRMED, Registry(REVOKED), NO_PAUSE],
         f"{COUNT} {READ} {FAIL}", "secret_revoked", 400),
    Case("it was deleted since", LIVE, [NOT_CONFIRMED, Registry(None), NO_PAUSE],
         f"{COUNT} {READ} {FAIL}", "invalid_credentials", 400),
    Case("it changed while it was read", None,
         [Registry(LIVE), NOT_CONFIRMED, Registry(BLOCKED), STORED],
         f"{READ} {COUNT} {READ} {COUNT}", "system_user_blocked", 400),
    Case("it changes again and again", LIVE,
         [NOT_CONFIRMED, Registry(BLOCKED), NOT_CONFIRMED, Registry(LIVE), NOT_CONFIRMED,
          Registry(BLOCKED), STORED],
         f"{COUNT} {READ} {COUNT} {READ} {COUNT} {LOCK} {COUNT}", "system_user_blocked", 400),
    Case("it is deleted before it is locked", LIVE,
         [NOT_CONFIRMED, Registry(LIVE), NOT_CONFIRMED, Registry(LIVE), NOT_CONFIRMED,
          Registry(None), NO_PAUSE],
         f"{COUNT} {READ} {COUNT} {READ} {COUNT} {LOCK} {FAIL}", "invalid_credentials", 400),
    # Failures: none is decided from memory.
    Case("a wrong secret", LIVE, [Registry(None), NO_PAUSE], f"{READ} {FAIL}",
         "invalid_credentials", 400, WRONG),
    Case("an unknown id", LIVE, [Registry(None), NO_PAUSE], f"{READ} {FAIL}",
         "invalid_credentials", 400, {"client_id": new_client_id("test")}),
    Case("a secret that was revoked", REVOKED, [Registry(REVOKED), NO_PAUSE], f"{READ} {FAIL}",
         "secret_revoked", 400),
    Case("a secret that is revoked only here", REVOKED, [Registry(LIVE), STORED],
         f"{READ} {COUNT}", "issued", 200),
    Case("a secret that has expired", EXPIRED, [Registry(EXPIRED), NO_PAUSE], f"{READ} {FAIL}",
         "secret_expired", 400),
    Case("a secret that has expired only here", EXPIRED, [Registry(LIVE), STORED],
         f"{READ} {COUNT}", "issued", 200),
    # Limits: nothing is recorded.
    Case("a wrong secret in a pause", LIVE, [Registry(None), PAUSE], f"{READ} {FAIL}",
         "rate_limited", 429, WRONG),
    Case("a secret that has expired, in a pause", EXPIRED, [Registry(EXPIRED), PAUSE],
         f"{READ} {FAIL}", "rate_limited", 429),
    Case("the limit is reached, and it is known", LIVE, [NOT_CONFIRMED, Registry(LIVE, 12)],
         f"{COUNT} {READ}", "rate_limited", 429),
    Case("the limit is reached, and it is not known", None, [Registry(LIVE, 12)], READ,
         "rate_limited", 429),
    Case("the limit of a blocked client is reached", None, [Registry(BLOCKED, 12)], READ,
         "rate_limited", 429),
    Case("the limit is reached while it is confirmed", None,
         [Registry(LIVE, 11), NOT_CONFIRMED, Registry(LIVE, 12)], f"{READ} {COUNT} {READ}",
         "rate_limited", 429),
    # Requests that cannot be read.
    Case("a missing parameter", LIVE, [NO_PAUSE], REJECT, "missing_parameter", 400,
         {"client_id": ""}),
    Case("credentials that are cut off", LIVE, [NO_PAUSE], REJECT, "malformed_credentials", 400,
         {"client_secret": CLIENT_SECRET[:-1]}),
    Case("another grant type", LIVE, [NO_PAUSE], REJECT, "unsupported_grant_type", 400,
         {"grant_type": "password"}),
    Case("a taxpayer that is none", LIVE, [NO_PAUSE], REJECT, "malformed_on_behalf_of", 400,
         on_behalf_of="?"),
    Case("a missing parameter, in a pause", LIVE, [PAUSE], REJECT, "rate_limited", 429,
         {"client_id": ""}),
    Case("credentials that are cut off, in a pause", LIVE, [PAUSE], REJECT, "rate_limited", 429,
         {"client_secret": CLIENT_SECRET[:-1]}),
]  # fmt: skip

SECOND = timedelta(seconds=1)
UNAVAILABLE = ("temporarily_unavailable", 503)
KEY = Key("a-kid", "ES256", NOW - DAY, {}, generate("ES256"))
each_case = pytest.mark.parametrize("case", CASES, ids=[case.claim for case in CASES])


@pytest.fixture(autouse=True)
def _signing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signer._cache, "_ring", KeyRing((KEY,)))
    monkeypatch.setattr(signer._cache, "_read_at", datetime.now(UTC))


# --- Which calls, in which order ------------------------------------------------------------------
@each_case
def test_each_outcome_takes_these_calls(case: Case) -> None:
    _node, _arrival, steps = case.begin()
    calls, ended = drive(steps, case.results)
    assert names(calls) == case.calls
    assert (ended.outcome, ended.answer.status) == (case.outcome, case.status)
    assert (b"access_token" in ended.answer.body) == (case.outcome == "issued")


@each_case
def test_nothing_is_answered_before_its_record_and_nothing_is_recorded_twice(case: Case) -> None:
    _node, arrival, steps = case.begin()
    calls, ended = drive(steps, case.results)
    stored = [
        call
        for call, result in zip(calls, case.results, strict=True)
        if (isinstance(call, CountedLogin) and isinstance(result, Quota))
        or (isinstance(call, FailedLogin | RejectedRequest) and result is NO_PAUSE)
    ]
    if ended.outcome == "rate_limited":
        assert stored == []
        return
    assert stored == [calls[-1]]
    event = stored[0].event
    assert event.id == arrival.id
    assert ended.answer.headers["correlationId"] == str(arrival.id)
    assert event.reason == ("" if ended.outcome == "issued" else ended.outcome)
    assert bool(event.kid) == (ended.outcome == "issued")


@each_case
def test_nothing_of_a_login_waits_for_the_garbage_collector(case: Case) -> None:
    """As the traceback of a refusal would, with the frames that hold the request and its secret."""
    drive(case.begin()[2], case.results)  # what is made once
    steps = case.begin()[2]
    gc.collect()
    drive(steps, case.results)
    del steps
    assert gc.collect() == 0


@each_case
def test_a_login_is_decided_by_the_facts_that_were_known_or_read_last(case: Case) -> None:
    _node, _arrival, steps = case.begin()
    calls, _ended = drive(steps, case.results)
    facts = case.known
    for call, result in zip(calls, case.results, strict=True):
        if isinstance(call, CountedLogin):
            assert facts is not None
            sent = (call.system_user_id, call.secret_id, call.limit, call.epoch)
            assert sent == (41, 51, 12, facts.epoch)
            assert call.event.system_user_id == 41
            assert (call.event.reason == "system_user_blocked") == (facts == BLOCKED)
        elif isinstance(result, Registry):
            facts = result.facts


def test_a_login_that_is_never_confirmed_ends_as_unavailable() -> None:
    _node, _arrival, steps = Case("", LIVE, (), "", "", 0).begin()
    step: Any = advance(steps)
    calls = []
    while not isinstance(step, EndedLogin):
        calls.append(step)
        assert len(calls) < 12
        is_read = isinstance(step, FactsQuery | LockedRead)
        step = advance(steps, Registry(LIVE).read() if is_read else NOT_CONFIRMED)
    assert (step.outcome, step.answer.status) == UNAVAILABLE
    assert b"access_token" not in step.answer.body
    assert sum(isinstance(call, CountedLogin) for call in calls) == 4
    assert sum(isinstance(call, LockedRead) for call in calls) >= 1


def test_a_login_whose_index_ends_again_and_again_ends_as_unavailable() -> None:
    _node, _arrival, steps = Case("", None, (), "", "", 0).begin()
    calls, ended = drive(steps, [*12 * [Registry(WIDER), ENDED], Registry(WIDER)])
    assert names(calls) == 12 * f"{READ} {END} " + READ
    assert (ended.outcome, ended.answer.status) == UNAVAILABLE


# --- Errors ---------------------------------------------------------------------------------------
@each_case
@pytest.mark.parametrize(
    ("error", "outcome", "status"),
    [
        *((e, *UNAVAILABLE) for e in (OperationalError, InterfaceError, DatabaseError)),
        (ZeroDivisionError, "server_error", 500),
    ],
)
def test_an_error_at_any_call_ends_the_login_without_a_token(
    case: Case, error: type[Exception], outcome: str, status: int
) -> None:
    for n in range(len(case.results)):
        _node, _arrival, steps = case.begin()
        calls, ended = drive(steps, [*case.results[:n], error("at 10.1.2.3")])
        assert len(calls) == n + 1  # nothing is asked after it
        assert (ended.outcome, ended.answer.status) == (outcome, status)
        assert ("Retry-After" in ended.answer.headers) == (status == 503)
        assert b"access_token" not in ended.answer.body
        assert b"10.1.2.3" not in ended.answer.body


@pytest.mark.parametrize(
    ("error", "has_traceback"), [(OperationalError("gone"), False), (ZeroDivisionError(), True)]
)
def test_an_outage_is_a_line_in_the_log_and_any_other_error_has_its_traceback(
    error: Exception, has_traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    _node, arrival, steps = Case("", None, (), "", "", 0).begin()
    drive(steps, [error])
    (record,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert (record.name, record.getMessage()) == ("tokens.login", "login failed")
    assert bool(record.exc_info) is has_traceback
    assert vars(record)["reference"] == str(arrival.id)
    assert vars(record)["error"].endswith(f"{type(error).__name__}: {error}")


@pytest.mark.parametrize(
    ("known", "results", "calls"),
    [(LIVE, [STORED], COUNT), (None, [Registry(LIVE), STORED], f"{READ} {COUNT}")],
)
def test_an_error_in_a_decision_is_recorded_and_counted(
    known: Facts | None, results: list[Any], calls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolkit, "decide", lambda _: 1 / 0)
    _node, _arrival, steps = Case("", known, (), "", "", 0).begin()
    made, ended = drive(steps, results)
    assert names(made) == calls
    (recorded,) = [call for call in made if isinstance(call, CountedLogin)]
    assert recorded.event.reason == ended.outcome == "server_error"
    assert ended.answer.status == 500


def test_a_login_changes_nothing_in_what_oauthlibs_requests_share() -> None:
    before = repr(toolkit._BLANK)
    _node, _arrival, steps = Case("", LIVE, (), "", "", 0).begin()
    assert drive(steps, [STORED])[1].outcome == "issued"
    assert repr(toolkit._BLANK) == before
    assert toolkit._BLANK.keys() == vars(Request("", "POST", [], encoding=None)).keys()


@pytest.mark.parametrize("known", [LIVE, None])
def test_an_error_before_authentication_counts_only_for_the_address(
    known: Facts | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolkit, "authenticate", lambda *_: 1 / 0)
    _node, arrival, steps = Case("", known, (), "", "", 0).begin()
    made, ended = drive(steps, [Registry(LIVE), NO_PAUSE])
    assert names(made) == f"{READ} {REJECT}"
    assert isinstance(made[1], RejectedRequest)
    event = made[1].event
    assert (event.id, event.reason) == (arrival.id, "server_error")
    assert (event.client_id, event.system_user_id) == (CLIENT_ID, None)
    assert (ended.outcome, ended.answer.status) == ("server_error", 500)


@pytest.mark.parametrize("known", [LIVE, None])
def test_signing_keys_that_cannot_be_read_are_a_503_that_is_not_recorded(
    known: Facts | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(at: datetime) -> KeyRing:
        raise OperationalError("gone")

    monkeypatch.setattr("tokens.access_tokens.issuing.current_key_ring", fail)
    _node, _arrival, steps = Case("", known, (), "", "", 0).begin()
    made, ended = drive(steps, [Registry(LIVE)])
    assert names(made) == READ
    assert (ended.outcome, ended.answer.status) == UNAVAILABLE


# --- By the clock of the database -----------------------------------------------------------------
@pytest.mark.parametrize(
    ("facts", "calls"), [(LIVE, COUNT), (BLOCKED, COUNT), (EXPIRED, FAIL), (None, FAIL)]
)
def test_what_is_recorded_has_the_moment_at_which_the_registry_was_read(
    facts: Facts | None, calls: str
) -> None:
    _node, arrival, steps = Case("", None, (), "", "", 0).begin()
    assert isinstance(advance(steps), FactsQuery)
    reading = replace(Registry(facts).read(), at=arrival.at + SECOND)
    call = advance(steps, reading)
    assert names([call]) == calls
    assert isinstance(call, CountedLogin | FailedLogin)
    assert call.event.at == arrival.at + SECOND


@pytest.mark.parametrize("known", [LIVE, None])
@pytest.mark.parametrize("facts", [LIVE, None])
def test_a_node_whose_clock_is_found_to_be_wrong_decides_and_records_nothing(
    known: Facts | None, facts: Facts | None
) -> None:
    _node, arrival, steps = Case("", known, (), "", "", 0).begin()
    if known is not None:
        advance(steps)  # what was decided is not confirmed
    assert isinstance(advance(steps, NOT_CONFIRMED), FactsQuery)
    ended = advance(steps, replace(Registry(facts).read(), at=arrival.at + 3 * SECOND))
    assert isinstance(ended, EndedLogin)
    assert (ended.outcome, ended.answer.status) == UNAVAILABLE
    assert b"access_token" not in ended.answer.body


# --- What callers cannot tell apart ---------------------------------------------------------------
def calls_of(form: dict[str, str], known: Facts | None, result: object) -> list[object]:
    """Those of a login that fails, without what differs from login to login."""
    _node, _arrival, steps = Case("", known, (), "", "", 0, form, str(OTHER)).begin()
    (query, failure), ended = drive(steps, [Registry(None), result])
    assert isinstance(query, FactsQuery)
    assert isinstance(failure, FailedLogin)
    assert failure.event.client_id == query.client_id == (RIGHT | form)["client_id"]
    event = failure.event._asdict() | {"id": None, "at": None, "client_id": None}
    headers = ended.answer.headers | {"correlationId": None, "Retry-After": None}
    return [query.on_behalf_of, event, failure.address_bucket, ended.answer.status, headers]


@pytest.mark.parametrize("known", [LIVE, BLOCKED, REVOKED, GRANTED, None])
@pytest.mark.parametrize("result", [NO_PAUSE, PAUSE])
def test_a_wrong_secret_and_an_unknown_id_make_the_same_calls(
    known: Facts | None, result: Throttle | None
) -> None:
    wrong = calls_of(WRONG, known, result)
    unknown = calls_of({"client_id": new_client_id("test")}, known, result)
    assert wrong == unknown


def test_a_failure_counts_for_its_caller_and_id_and_for_its_address() -> None:
    def buckets(address: str, **form: str) -> tuple[int, int]:
        _node, _arrival, steps = Case("", None, (), "", "", 0, WRONG | form).begin(address)
        calls, _ended = drive(steps, [Registry(None), NO_PAUSE])
        failure = calls[-1]
        assert isinstance(failure, FailedLogin)
        return failure.pair_bucket, failure.address_bucket

    here, there = buckets("192.0.2.1"), buckets("192.0.2.2")
    other = buckets("192.0.2.1", client_id=new_client_id("test"))
    assert here == buckets("192.0.2.1", client_secret=new_client_secret("test"))
    assert here[1] == other[1] != there[1]
    assert len({here[0], other[0], there[0]}) == 3


# --- What a node learns ---------------------------------------------------------------------------
def test_what_was_read_is_known_at_the_next_login() -> None:
    node, _arrival, steps = Case("", None, (), "", "", 0).begin()
    drive(steps, [Registry(LIVE), STORED])
    assert isinstance(node.local_facts, Memory)
    assert node.local_facts.facts == LIVE


def test_a_remembered_denial_asks_for_nothing() -> None:
    node, _arrival, steps = Case("", LIVE, (), "", "", 0).begin()
    drive(steps, [NOT_CONFIRMED, Registry(LIVE, 12)])
    assert again(node, {}, "198.51.100.7", []) == ("", 429)


# --- Rejected before authentication ---------------------------------------------------------------
def rejected(address: str, known: Facts | None = None, **form: str) -> RejectedRequest:
    """What a request that is refused before authentication asks of the database."""
    _node, _arrival, steps = Case("", known, (), "", "", 0, {"client_id": ""} | form).begin(address)
    call = advance(steps)
    assert isinstance(call, RejectedRequest)
    return call


def test_a_rejected_request_counts_for_its_address_whatever_it_sends() -> None:
    """What is one address: tests/tokens/test_rate_limits.py."""
    here = rejected("192.0.2.1").bucket
    assert here == rejected("192.0.2.1", client_id="ci_test_cut_off").bucket
    assert here == rejected("192.0.2.1", grant_type="password").bucket
    assert here != rejected("192.0.2.2").bucket


def test_of_what_a_stranger_wrote_so_much_is_recorded() -> None:
    arrival = Arrival(uuid4(), "", NOW, "192.0.2.1", "u." * 150)
    refused = Refused(ProtocolReason.MALFORMED_REQUEST, parameter="scope", detail="d." * 150)
    event = unreadable_call(arrival, UnreadableRequest("x", OTHER), refused).event
    assert (event.client_id, event.subject) == ("x", str(OTHER))
    assert (event.detail, event.user_agent) == ("d." * 100, "u." * 100)
    assert (event.reason, event.parameter) == ("malformed_request", "scope")
    assert (event.actor, event.system_user_id, event.secret_id) == ("", None, None)


def again(node: Node, form: dict[str, str], address: str, results: list[Any]) -> tuple[str, int]:
    """The calls and the status of another request to this node."""
    meta = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": FORM, "REMOTE_ADDR": address}
    received = receive(meta, urlencode(RIGHT | form).encode(), node.clock.now())
    calls, ended = drive(log_in(node, *received), results)
    return names(calls), ended.answer.status


@pytest.mark.parametrize("form", [{"client_id": ""}, {"client_secret": CLIENT_SECRET[:-1]}])
def test_of_an_address_that_has_to_wait_only_what_would_be_refused_is_denied(
    form: dict[str, str],
) -> None:
    node, _arrival, steps = Case("", LIVE, (), "", "", 0, form).begin("2001:db8::1")
    drive(steps, [PAUSE])
    for address in ("2001:db8::1", "2001:db8::2"):
        assert again(node, {"client_id": ""}, address, []) == ("", 429)
        assert again(node, {"grant_type": "x"}, address, []) == ("", 429)
        assert again(node, {}, address, [STORED]) == (COUNT, 200)
        assert again(node, WRONG, address, [Registry(None), NO_PAUSE]) == (f"{READ} {FAIL}", 400)
    assert again(node, form, "2001:db8:0:1::1", [NO_PAUSE]) == (REJECT, 400)


def test_callers_that_have_to_wait_cost_no_memory_that_grows() -> None:
    node = Node(Memory(None), denials=DenialCache(size=20))
    for number in range(100):
        assert again(node, {"client_id": ""}, f"192.0.2.{number}", [PAUSE]) == (REJECT, 429)
        unknown = {"client_id": new_client_id("test")}
        results = [Registry(None), PAUSE]
        assert again(node, unknown, f"192.0.2.{number}", results) == (f"{READ} {FAIL}", 429)
        assert len(node.denials) == min(20, 2 * (number + 1))
    assert isinstance(node.local_facts, Memory)
    assert node.local_facts.facts is None
