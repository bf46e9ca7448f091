"""The record of a login: its event and its count, both or neither (contract 1 and 5).

Nothing is answered before its event is durable. What a limit denies leaves no trace but in the
metrics.
"""

import hashlib
from datetime import datetime
from functools import cache

from django.conf import settings

from taxpayers.credentials import without_secrets
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import Refused
from tokens.access_tokens.issuing import SignedToken
from tokens.client_auth.authenticated import AuthenticatedClient
from tokens.endpoint.arrival import Arrival
from tokens.endpoint.request import TokenRequest, UnreadableRequest
from tokens.endpoint.throttle import throttled
from tokens.login_events.events import CountedLogin, Event, FailedLogin
from tokens.login_events.store import login_event_store
from tokens.rate_limits.quota import Quota
from tokens.rate_limits.throttle import Throttle
from tokens.refusals.table import REFUSALS

_BUCKETS = 1 << 16
_CLIENT_ID_LENGTH, _DETAIL_LENGTH, _USER_AGENT_LENGTH = 64, 200, 200


def record_issued(
    arrival: Arrival, asked: TokenRequest, client: AuthenticatedClient, token: SignedToken
) -> Quota:
    """Makes the event of a granted login durable and counts it.

    Raises RateLimited, then nothing was written; or django.db.DatabaseError, then there must be no
    token.
    """
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
    return _count(arrival, asked, client, event, authorization.at)


def record_refused(
    arrival: Arrival,
    asked: TokenRequest,
    client: AuthenticatedClient | None,
    refused: Refused,
    at: datetime,
) -> Quota | None:
    """Makes the event of a refused login durable and counts it; the quota if a secret matched.

    `at` is the moment by which it counts. A reason that is not recorded writes nothing. Raises as
    `record_issued`.
    """
    refusal = REFUSALS[refused.reason]
    if not refusal.recorded:
        return None
    subject = asked.on_behalf_of or (client.client.taxpayer if client else None)
    event = _event(arrival, asked, client, at, subject=subject, refused=refused)
    if refusal.counts_as_failure:
        return _count_failure(arrival, asked, client, event, at)
    if client is not None:
        return _count(arrival, asked, client, event, at)
    login_event_store().add(event)
    return None


def record_unreadable(arrival: Arrival, sent: UnreadableRequest, refused: Refused) -> None:
    """Makes the event of a request that asks for nothing readable durable.

    Raises django.db.DatabaseError.
    """
    event = _event(arrival, sent, None, arrival.at, subject=sent.on_behalf_of, refused=refused)
    login_event_store().add(event)


def client_id_as_sent(sent: TokenRequest | UnreadableRequest) -> str:
    """What is stored and logged of it: cut, printable, and never a secret."""
    return _printable(sent.client_id, _CLIENT_ID_LENGTH)


def _count(
    arrival: Arrival, asked: TokenRequest, client: AuthenticatedClient, event: Event, at: datetime
) -> Quota:
    counted = CountedLogin(client.client.id, client.secret.id, client.client.logins_per_minute, at)
    outcome = login_event_store().add_counted(event, counted)
    if isinstance(outcome, Throttle):
        raise throttled(arrival, asked, client, outcome)
    return outcome


def _count_failure(
    arrival: Arrival,
    asked: TokenRequest,
    client: AuthenticatedClient | None,
    event: Event,
    at: datetime,
) -> Quota | None:
    address = arrival.source_address or ""
    failed = FailedLogin(
        pair_bucket=2 * _bucket(f"{asked.client_id}\n{address}"),
        address_bucket=2 * _bucket(address) + 1,
        at=at,
    )
    throttle = login_event_store().add_failed(event, failed)
    if throttle is not None:
        raise throttled(arrival, asked, client, throttle)
    if client is None:
        return None
    return login_event_store().quota(client.client.id, client.client.logins_per_minute, at)


def _bucket(caller: str) -> int:
    # Keyed, so that nobody can look for an innocent caller's bucket to fail in.
    digest = hashlib.blake2b(caller.encode(), key=_bucket_key(), digest_size=4).digest()
    return int.from_bytes(digest) % _BUCKETS


@cache
def _bucket_key() -> bytes:
    return hashlib.sha256(f"failure buckets {settings.SECRET_KEY}".encode()).digest()


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
        detail=_printable(refused.detail, _DETAIL_LENGTH) if refused else "",
        client_id=client_id_as_sent(sent),
        system_user_id=client.client.id if client else None,
        secret_id=client.secret.id if client else None,
        subject=str(subject or ""),
        actor=str(client.client.taxpayer) if client and sent.on_behalf_of else "",
        scope=scope,
        kid=kid,
        source_address=arrival.source_address,
        user_agent=_printable(arrival.user_agent, _USER_AGENT_LENGTH),
    )


def _printable(text: str, length: int) -> str:
    # Cut last: a text in which a secret is hidden may be longer than before.
    shown = without_secrets(text)[:length]
    # PostgreSQL stores no NUL, and a log line no line break.
    return shown if shown.isprintable() else "".join(c if c.isprintable() else "?" for c in shown)
