"""The record of a login: its event and what it counts against (contract 1 and 5).

What a limit denies leaves no trace but in the metrics.
"""

import hashlib
from collections.abc import Generator
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from django.conf import settings

from taxpayers.facts.values import Reading
from taxpayers.identifiers import TaxpayerId
from taxpayers.redaction import EXAMINED, shown
from taxpayers.rules import Refused
from tokens import calls
from tokens.client_auth.authenticated import AuthenticatedClient
from tokens.client_auth.methods import use_of
from tokens.client_auth.private_key_jwt import used_before
from tokens.operations.denials import check_limit, check_rejections, record_rejection, throttled
from tokens.operations.stages import Decision, IssuedLogin, Login, Recorded
from tokens.rate_limits.backoff import Buckets
from tokens.rate_limits.quota import CounterState, Quota, current_quota
from tokens.rate_limits.throttle import Throttle
from tokens.refusals.table import REFUSALS
from tokens.request.arrival import Arrival
from tokens.request.token_request import TokenRequest, UnreadableRequest
from tokens.status_lists.assignment import TokenIndex

_DETAIL_LENGTH, _USER_AGENT_LENGTH = 200, 200


def record(
    login: Login, decision: Decision
) -> Generator[calls.Write, Any, Recorded | calls.ProofUsedBefore | None]:
    """Stores what was decided. Not if it is not confirmed, or lacks an index: no Recorded then."""
    call = decision.call
    if isinstance(call, calls.CountedLogin):
        check_limit(login, decision)
        counted: calls.CountResult = yield call
        if isinstance(counted, Quota):
            return Recorded(decision, counted)
        if isinstance(counted, calls.UsedBefore):
            return (yield from record(login, _without_proof(login, decision)))
        return counted
    # A failure has no epoch that confirms it, so it is never decided from memory.
    if decision.outcome is None or decision.reading.is_remembered:
        return None
    if isinstance(call, calls.RejectedRequest):
        check_rejections(login.node, login.arrival)
        yield from record_rejection(login.node, login.arrival, call)
    elif isinstance(call, calls.FailedLogin):
        throttle: Throttle | None = yield call
        if throttle is not None:
            raise throttled(login, decision, throttle)
    return Recorded(decision, _quota(decision))


def _without_proof(login: Login, decision: Decision) -> Decision:
    """Its assertion was used before, so it proves nothing; the event names the client."""
    at, refused = decision.reading.at, used_before()
    call = refused_call(login, decision.client, refused, at)
    return Decision(Reading(at, None), None, refused, call)


def _quota(decision: Decision) -> Quota | None:
    client, reading = decision.client, decision.reading
    if client is None or reading.counter is None:
        return None
    limit = client.client.logins_per_minute
    return current_quota(CounterState(*reading.counter), limit, reading.at)


def issued_call(login: Login, issued: IssuedLogin) -> calls.CountedLogin:
    """The event of a granted login, its count, and the index of its token."""
    token, index, authorization = issued.token, issued.index, issued.token.authorization
    event = _event(
        login.arrival,
        login.asked,
        issued.client,
        authorization.at,
        subject=authorization.subject,
        scope=" ".join(authorization.scopes),
        kid=token.kid,
    )
    return _counted(login, issued.client, event, index)


def refused_call(
    login: Login, client: AuthenticatedClient | None, refused: Refused, at: datetime
) -> calls.Write | None:
    """The event of a login that is refused at `at`, and its count; None: it is not recorded."""
    refusal, arrival, asked = REFUSALS[refused.reason], login.arrival, login.asked
    if not refusal.recorded:
        return None
    subject = asked.on_behalf_of or (client.client.taxpayer if client else None)
    event = _event(arrival, asked, client, at, subject=subject, refused=refused)
    if refusal.counts_as_failure and (login.terms.pauses or client is None):
        address = arrival.source_address
        pair = buckets().of_pair(asked.client_id, address)
        return calls.FailedLogin(event, pair, buckets().of_address(address))
    return _rejected(arrival, event) if client is None else _counted(login, client, event)


def unreadable_call(
    arrival: Arrival, sent: UnreadableRequest, refused: Refused
) -> calls.RejectedRequest:
    """The event of a request that asks for nothing readable, and its count."""
    event = _event(arrival, sent, None, arrival.at, subject=sent.on_behalf_of, refused=refused)
    return _rejected(arrival, event)


def _counted(
    login: Login, client: AuthenticatedClient, event: calls.Event, index: TokenIndex | None = None
) -> calls.CountedLogin:
    facts, status = client.facts, index.status if index else None
    return calls.CountedLogin(
        event,
        facts.client.id,
        facts.credential.id,
        facts.client.logins_per_minute,
        facts.epoch,
        use_of(login.asked.credentials),
        client.proof,
        status.index if status else None,
        status.version if status else None,
        index.new if index else None,
    )


def _rejected(arrival: Arrival, event: calls.Event) -> calls.RejectedRequest:
    return calls.RejectedRequest(event, buckets().of_rejections(arrival.source_address))


@cache
def buckets() -> Buckets:
    """Those of this service: all of its processes have the same key."""
    return Buckets(hashlib.sha256(f"failure buckets {settings.SECRET_KEY}".encode()).digest())


def _event(
    arrival: Arrival,
    sent: TokenRequest | UnreadableRequest,
    client: AuthenticatedClient | None,
    at: datetime,
    *,
    subject: TaxpayerId | None,
    refused: Refused | None = None,
    scope: str = "",
    kid: str = "",
) -> calls.Event:
    return calls.Event(
        id=arrival.id,
        at=at,
        reason=refused.reason if refused else "",
        since=refused.since if refused else None,
        parameter=refused.parameter if refused else "",
        detail=shown(refused.detail, _DETAIL_LENGTH) if refused else "",
        client_id=sent.client_id,  # with a right checksum, or as `recognize` shows it
        system_user_id=client.client.id if client else None,
        secret_id=client.credential.id if client else None,
        subject=str(subject or ""),
        actor=str(client.client.taxpayer) if client and sent.on_behalf_of else "",
        scope=scope,
        kid=kid,
        source_address=arrival.source_address,
        user_agent=_shown_agent(arrival.user_agent[: EXAMINED * _USER_AGENT_LENGTH]),
    )


@lru_cache(maxsize=256)
def _shown_agent(user_agent: str) -> str:
    return shown(user_agent, _USER_AGENT_LENGTH)
