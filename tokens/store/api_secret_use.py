"""Stores when a secret of a protected API was last used, to the minute: once a minute at most."""

from collections.abc import Sequence
from datetime import UTC, datetime

from django.db.models import F
from django.db.models.functions import Greatest

from taxpayers.sql import Statement
from tokens.calls import ApiSecretUse
from tokens.models import ProtectedApiSecret
from tokens.store.postgresql_event import NOW


class UsesOfThisMinute:
    """As many entries as there are secrets that authenticate protected APIs."""

    def __init__(self) -> None:
        self._minutes: dict[int, datetime] = {}

    def is_first(self, secret_id: int, at: datetime) -> bool:
        """Whether it is the first use of this secret in its minute, which is thereby taken."""
        minute = minute_of(at)
        if self._minutes.get(secret_id) == minute:
            return False
        self._minutes[secret_id] = minute
        return True


def minute_of(at: datetime) -> datetime:
    """The start of the minute of this moment."""
    return at.replace(second=0, microsecond=0)


# Of its first minute the moment when it was created: no use lies before that.
_MINUTE = f"greatest(date_trunc('minute', {NOW}), created_at)"
# A row that another session has locked is skipped: no call waits for staff or for another node.
_STORE = f"""
WITH stored AS (
    UPDATE protected_api_secrets s SET last_used_at = used.minute
    FROM (
        SELECT id, {_MINUTE} AS minute FROM protected_api_secrets
        WHERE id = ANY(%s::bigint[]) AND last_used_at IS DISTINCT FROM {_MINUTE}
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS used
    WHERE s.id = used.id
)
SELECT {NOW}"""


def use_statement(uses: Sequence[ApiSecretUse]) -> Statement[list[None]]:
    """Stores all of these uses, by the clock of the database."""
    ids = sorted({use.secret_id for use in uses})
    return Statement(_STORE, (ids,), lambda _rows: [None] * len(uses))


def store_use_on_sqlite(use: ApiSecretUse) -> None:
    """The same on SQLite. Raises django.db.DatabaseError."""
    minute = Greatest(minute_of(datetime.now(UTC)), F("created_at"))
    rows = ProtectedApiSecret.objects.filter(pk=use.secret_id)
    rows.exclude(last_used_at=minute).update(last_used_at=minute)
