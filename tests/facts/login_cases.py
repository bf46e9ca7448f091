"""Logins on a node that knows something, and what the database answers to each call."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from msgspec.structs import replace

from taxpayers.credentials import hash_secret, new_client_id, new_client_secret
from taxpayers.facts.values import (
    ClientFacts,
    CredentialFacts,
    Facts,
    FactsQuery,
    IntermediaryFacts,
    PermissionFacts,
    Reading,
    RepresentedFacts,
    StatusFacts,
)
from taxpayers.identifiers import TaxpayerId
from tests.support.erp import FORM
from tokens.calls import Call, TakenIndex
from tokens.operations.login import EndedLogin, Steps, log_in
from tokens.operations.node import Node
from tokens.operations.steps import LockedRead, advance, fail
from tokens.rate_limits.quota import Quota
from tokens.rate_limits.throttle import Throttle
from tokens.request.arrival import Arrival, receive

DAY = timedelta(days=1)
NOW = datetime.now(UTC)
CLIENT_ID, CLIENT_SECRET = new_client_id("test"), new_client_secret("test")
OTHER = TaxpayerId("C2000000002")

LIVE = Facts(
    ClientFacts(
        id=41,
        client_id=CLIENT_ID,
        taxpayer=TaxpayerId("C1000000001"),
        taxpayer_is_active=True,
        scopes=("InvoicingAPI",),
        logins_per_minute=12,
        blocked_at=None,
        expires_at=None,
        intermediary=IntermediaryFacts(is_active=True, active_until=None),
    ),
    CredentialFacts(51, "7aQ2", expires_at=NOW + DAY, revoked_at=None),
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
        body = urlencode(RIGHT | self.form).encode()
        arrival, raw = receive(meta, body, node.clock.now())
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
