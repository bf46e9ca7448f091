"""What uses which secret of a system user: addresses and programs, from its latest logins.

Reads the newest MAX_LOGINS logins of LOOKBACK by one index, so its cost is limited.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import QuerySet

from taxpayers.models import Credential, SystemUser
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.rate_limits.quota import WINDOW

LOOKBACK = timedelta(days=30)
MAX_LOGINS = 1_500
MAX_SOURCES = 5
_CLOCKS_DIFFER = timedelta(seconds=10)
_FIELDS = ("at", "reason", "secret_id", "source_address", "user_agent")


class Login(NamedTuple):
    """One login; `secret_id` is None if no secret matched."""

    at: datetime
    reason: str
    secret_id: int | None
    source_address: str | None
    user_agent: str


@dataclass
class SecretUse:
    issued: int = 0
    refused: int = 0
    last: Login | None = None  # the last one that got a token
    last_refused: Login | None = None
    _addresses: Counter[str] = field(default_factory=Counter)
    _programs: Counter[str] = field(default_factory=Counter)

    @property
    def is_recent(self) -> bool:
        return bool(self.issued or self.refused)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return self._addresses.most_common(MAX_SOURCES)

    @property
    def programs(self) -> list[tuple[str, int]]:
        return self._programs.most_common(MAX_SOURCES)

    @property
    def hidden_addresses(self) -> int:
        return max(0, len(self._addresses) - MAX_SOURCES)

    def add(self, login: Login) -> None:
        """Add a login that is older than those before it."""
        self._addresses[login.source_address or ""] += 1
        self._programs[login.user_agent] += 1
        if login.reason:
            self.refused += 1
            self.last_refused = self.last_refused or login
        else:
            self.issued += 1
            self.last = self.last or login


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
    latest = _logins(system_user, first, at + _CLOCKS_DIFFER)[: MAX_LOGINS + 1]
    found = [Login(*row) for row in latest.values_list(*_FIELDS)]
    is_complete = len(found) <= MAX_LOGINS
    of = {secret.pk: SecretUse() for secret in secrets}
    for login in found[:MAX_LOGINS]:
        if login.secret_id in of:
            of[login.secret_id].add(login)
    for secret in secrets:
        use = of[secret.pk]
        if use.last is None and secret.is_live(at):  # of few, so that few queries follow
            use.last = _last_login(system_user, secret)
    since = first if is_complete else found[MAX_LOGINS - 1].at
    return UseOfSecrets(of, since, is_complete)


def _logins(system_user: SystemUser, start: datetime, end: datetime) -> "QuerySet[LoginEvent]":
    """The logins under its client id in this time, the newest first."""
    rows = LoginEvent.objects.filter(client_id=system_user.client_id)
    return rows.filter(pk__gte=first_id(start), pk__lt=first_id(end)).order_by("-pk")


def _last_login(system_user: SystemUser, secret: Credential) -> Login | None:
    """Its last login that got a token, found by the minute that is stored for the secret."""
    minute = secret.last_used_at
    if minute is None:
        return None
    around = _logins(system_user, minute - _CLOCKS_DIFFER, minute + WINDOW + _CLOCKS_DIFFER)
    of_secret = around.filter(secret_id=secret.pk, reason="").values_list(*_FIELDS)
    return next((Login(*row) for row in of_secret[:1]), None)
