"""The record of a login: its event and what it counts against (contract 1 and 5).

What a limit denies leaves no trace but in the metrics.
"""

import hashlib
from datetime import datetime
from functools import cache

from django.conf import settings

from taxpayers.identifiers import TaxpayerId
from taxpayers.redaction import shown
from taxpayers.rules import Refused
from tokens.access_tokens.issuing import SignedToken
from tokens.calls import CountedLogin, Event, FailedLogin, RejectedRequest, Write
from tokens.client_auth.authenticated import AuthenticatedClient
from tokens.client_auth.uses import use_of
from tokens.rate_limits.buckets import Buckets
from tokens.refusals.table import REFUSALS
from tokens.request.arrival import Arrival
from tokens.request.token_request import TokenRequest, UnreadableRequest
from tokens.status_lists.assignment import TokenIndex

_DETAIL_LENGTH, _USER_AGENT_LENGTH = 200, 200


def issued_call(
    arrival: Arrival,
    asked: TokenRequest,
    client: AuthenticatedClient,
    token: SignedToken,
    index: TokenIndex,
) -> CountedLogin:
    """The event of a granted login, its count, and the index of its token."""
    authorization = token.authorization
    event = _event(
        arrival,
        asked,
        client,
        authorization.at,
        subject=authorization.subject,
        scope=" ".join(authorization.scopes),
        kid=token.kid,
    )
    return counted_call(asked, client, event)._replace(
        status_index=index.status.index,
        status_version=index.status.version,
        new_index=index.new,
    )


def refused_call(
    arrival: Arrival,
    asked: TokenRequest,
    client: AuthenticatedClient | None,
    refused: Refused,
    at: datetime,
) -> Write | None:
    """The event of a login that is refused at the moment `at`, and its count.

    None for a reason that is not recorded.
    """
    refusal = REFUSALS[refused.reason]
    if not refusal.recorded:
        return None
    subject = asked.on_behalf_of or (client.client.taxpayer if client else None)
    event = _event(arrival, asked, client, at, subject=subject, refused=refused)
    if refusal.counts_as_failure:
        return _failed(arrival, asked, event)
    return _rejected(arrival, event) if client is None else counted_call(asked, client, event)


def unreadable_call(arrival: Arrival, sent: UnreadableRequest, refused: Refused) -> RejectedRequest:
    """The event of a request that asks for nothing readable, and its count."""
    event = _event(arrival, sent, None, arrival.at, subject=sent.on_behalf_of, refused=refused)
    return _rejected(arrival, event)


def counted_call(asked: TokenRequest, client: AuthenticatedClient, event: Event) -> CountedLogin:
    """The event of a client that has proved itself, and its count against the client's limit."""
    facts = client.facts
    return CountedLogin(
        event,
        facts.client.id,
        facts.secret.id,
        facts.client.logins_per_minute,
        facts.epoch,
        use_of(asked.credentials),
        client.proof,
    )


def _failed(arrival: Arrival, asked: TokenRequest, event: Event) -> FailedLogin:
    address = arrival.source_address
    return FailedLogin(
        event,
        pair_bucket=buckets().of_pair(asked.client_id, address),
        address_bucket=buckets().of_address(address),
    )


def _rejected(arrival: Arrival, event: Event) -> RejectedRequest:
    return RejectedRequest(event, buckets().of_rejections(arrival.source_address))


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
) -> Event:
    return Event(
        id=arrival.id,
        at=at,
        reason=refused.reason if refused else "",
        since=refused.since if refused else None,
        parameter=refused.parameter if refused else "",
        detail=shown(refused.detail, _DETAIL_LENGTH) if refused else "",
        client_id=sent.client_id,  # with a right checksum, or as `recognize` shows it
        system_user_id=client.client.id if client else None,
        secret_id=client.secret.id if client else None,
        subject=str(subject or ""),
        actor=str(client.client.taxpayer) if client and sent.on_behalf_of else "",
        scope=scope,
        kid=kid,
        source_address=arrival.source_address,
        user_agent=shown(arrival.user_agent, _USER_AGENT_LENGTH),
    )
