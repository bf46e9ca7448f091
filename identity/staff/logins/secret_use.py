"""What uses which secret of a system user: addresses and programs, from its latest logins."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from taxpayers.models import Credential, SystemUser
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.rate_limits.quota import WINDOW

LOOKBACK = timedelta(days=30)
MAX_LOGINS = 1_500
MAX_SOURCES = 5
_CLOCKS_DIFFER = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class SecretUse:
    """Its latest logins in numbers; `last`: the last one that got a token."""

    issued: int
    refused: int
    last: Any
    last_refused: Any
    addresses: list[tuple[str, int]]
    hidden_addresses: int
    programs: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class UseOfSecrets:
    """The logins since a moment, by the id of their secret; `is_complete`: of all LOOKBACK."""

    of: dict[int, SecretUse]
    since: datetime
    is_complete: bool


def use_of_secrets(
    system_user: SystemUser, secrets: Collection[Credential], at: datetime
) -> UseOfSecrets:
    """What used these secrets until now."""
    # Also the logins with a wrong secret: to skip them here could mean to read very many.
    first = at - LOOKBACK
    found = list(_logins(system_user, first, at + _CLOCKS_DIFFER)[: MAX_LOGINS + 1])
    of = {}
    for secret in secrets:
        logins = [login for login in found[:MAX_LOGINS] if login.secret_id == secret.pk]
        last = next((login for login in logins if not login.reason), None)
        if last is None and secret.is_live(at):  # of few, so that few queries follow
            last = _last_login(system_user, secret)
        of[secret.pk] = _use(logins, last)
    is_complete = len(found) <= MAX_LOGINS
    since = first if is_complete else found[MAX_LOGINS - 1].at
    return UseOfSecrets(of, since, is_complete)


def _use(logins: list[Any], last: Any) -> SecretUse:
    refused = [login for login in logins if login.reason]
    addresses = Counter(login.source_address or "" for login in logins)
    return SecretUse(
        issued=len(logins) - len(refused),
        refused=len(refused),
        last=last,
        last_refused=refused[0] if refused else None,
        addresses=addresses.most_common(MAX_SOURCES),
        hidden_addresses=max(0, len(addresses) - MAX_SOURCES),
        programs=Counter(login.user_agent for login in logins).most_common(MAX_SOURCES),
    )


def _logins(system_user: SystemUser, start: datetime, end: datetime) -> "QuerySet[Any, Any]":
    """The logins under its client id in this time, the newest first."""
    rows = LoginEvent.objects.filter(client_id=system_user.client_id)
    rows = rows.filter(pk__gte=first_id(start), pk__lt=first_id(end)).order_by("-pk")
    return rows.values_list("at", "reason", "secret_id", "source_address", "user_agent", named=True)


def _last_login(system_user: SystemUser, secret: Credential) -> Any:
    """Its last login that got a token, found by the minute that is stored for the secret."""
    minute = secret.last_used_at
    if minute is None:
        return None
    around = _logins(system_user, minute - _CLOCKS_DIFFER, minute + WINDOW + _CLOCKS_DIFFER)
    return around.filter(secret_id=secret.pk, reason="").first()
