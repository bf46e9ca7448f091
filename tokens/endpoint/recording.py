"""The record of a login: its event and its count, both or neither (contract 1 and 5).

Nothing is answered before its event is durable, and what a limit denies leaves no trace but in
the metrics. Which denials this process remembers is decided here too.
"""

import hashlib
from collections.abc import Hashable
from dataclasses import replace
from functools import cache

from django.conf import settings

from taxpayers.credentials import without_secrets
from taxpayers.rules import Reason, Refusal, Refused
from tokens.endpoint.login import Login
from tokens.login_events.entries import CountedLogin, Event, FailedLogin
from tokens.login_events.store import login_event_store
from tokens.rate_limits.limits import DenialCache, Throttle

_FAILED = frozenset({Reason.INVALID_CREDENTIALS, Reason.SECRET_EXPIRED, Reason.SECRET_REVOKED})
_BUCKETS = 1 << 16
_CLIENT_ID_LENGTH, _TAXPAYER_LENGTH, _DETAIL_LENGTH, _USER_AGENT_LENGTH = 64, 64, 200, 200

_denials = DenialCache()


class TooMany(Refused):
    """A login beyond a limit: nothing was recorded."""

    def __init__(self, denial: Throttle) -> None:
        super().__init__(Refusal(Reason.RATE_LIMITED))
        self.denial = denial


def check_remembered(login: Login) -> None:
    """Raises TooMany if this very pair was denied a moment ago: no query and no write."""
    for key in _keys(login):
        denial = _denials.find(key, login.at)
        if denial is not None:
            raise TooMany(denial)


def record(login: Login) -> None:
    """Makes the login's event durable and counts it; sets `login.quota` if a secret matched.

    Raises TooMany, then nothing was written; or django.db.DatabaseError, then there must be no
    token.
    """
    reason = login.refusal.reason if login.refusal else None
    if reason in _FAILED:
        denial = login_event_store().add_failed(_event(login), _failed(login))
        if denial is not None:
            _deny(login, denial)
        if login.facts is not None:
            client = login.facts.client
            login.quota = login_event_store().quota(client.id, client.logins_per_minute, login.at)
    elif login.secret is not None:
        outcome = login_event_store().add_counted(_event(login), _counted(login))
        if isinstance(outcome, Throttle):
            _deny(login, outcome)
        else:
            login.quota = outcome
    else:
        login_event_store().add(_event(login))


def _deny(login: Login, denial: Throttle) -> None:
    secret = login.secret
    denial = replace(denial, secret_expires_at=secret.expires_at if secret else None)
    pair, pair_from_here = _keys(login)
    _denials.remember(pair if denial.limit else pair_from_here, denial)
    raise TooMany(denial)


def _keys(login: Login) -> tuple[Hashable, Hashable]:
    """What a denial is remembered by: the very pair, and for failures also where it came from."""
    pair = (login.attempt.client_id, login.hashed_secret)
    return pair, (*pair, login.source_address)


def _counted(login: Login) -> CountedLogin:
    assert login.facts is not None  # noqa: S101 - only called when a secret matched
    client, secret = login.facts.client, login.facts.secret
    return CountedLogin(client.id, secret.id, client.logins_per_minute, login.at)


def _failed(login: Login) -> FailedLogin:
    address = login.source_address or ""
    return FailedLogin(
        pair_bucket=2 * _bucket(f"{login.attempt.client_id}\n{address}"),
        address_bucket=2 * _bucket(address) + 1,
        at=login.at,
    )


def _bucket(caller: str) -> int:
    # Keyed, so that nobody can look for an innocent caller's bucket to fail in.
    digest = hashlib.blake2b(caller.encode(), key=_bucket_key(), digest_size=4).digest()
    return int.from_bytes(digest) % _BUCKETS


@cache
def _bucket_key() -> bytes:
    return hashlib.sha256(f"failure buckets {settings.SECRET_KEY}".encode()).digest()


def _event(login: Login) -> Event:
    client = login.facts.client if login.facts else None
    secret, refusal = login.secret, login.refusal
    authorization, attempt = login.authorization, login.attempt
    issued = authorization if refusal is None else None
    subject = attempt.on_behalf_of or (client.taxpayer if client else None)
    actor = client.taxpayer if client and attempt.on_behalf_of else None
    return Event(
        id=login.id,
        at=login.at,
        reason=refusal.reason if refusal else "",
        detail=_detail(refusal),
        client_id=client_id_as_sent(login),
        system_user_id=client.id if client else None,
        secret_id=secret.id if secret else None,
        subject=_text(str(subject or ""), _TAXPAYER_LENGTH),
        actor=_text(str(actor or ""), _TAXPAYER_LENGTH),
        scope=" ".join(issued.scopes) if issued else "",
        kid=login.kid if issued else "",
        source_address=login.source_address,
        user_agent=_text(login.user_agent, _USER_AGENT_LENGTH),
    )


def _detail(refusal: Refusal | None) -> str:
    if refusal is None:
        return ""
    if refusal.since is not None:
        return refusal.since.isoformat()
    return _text(refusal.detail, _DETAIL_LENGTH)


def forget_denials() -> None:
    """As a new process: nothing is remembered."""
    _denials.clear()


def client_id_as_sent(login: Login) -> str:
    """What is kept and logged of it: cut, printable, and never a secret."""
    return _text(login.attempt.client_id, _CLIENT_ID_LENGTH)


def _text(text: str, length: int) -> str:
    # Cut after a secret was made unreadable, so that not even half of one is left.
    shown = without_secrets(text)[:length]
    # PostgreSQL stores no NUL, and a log line no line break.
    return shown if shown.isprintable() else "".join(c if c.isprintable() else "?" for c in shown)
