"""The latest logins under a client ID, as staff look back from one of them (contract 5).

One query, by the index of the client, for a limited number of logins.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from tokens.models import LoginEvent

MAX_LOGINS = 1_000


class LatestLogin(NamedTuple):
    """The columns that are read of each login."""

    pk: UUID
    at: datetime
    reason: str
    subject: str
    actor: str
    source_address: str | None


@dataclass(frozen=True, slots=True)
class LatestLogins:
    """The newest first; `has_more`: there are older ones that were not read."""

    rows: list[LatestLogin]
    has_more: bool = False

    @property
    def last_token_at(self) -> datetime | None:
        """When it got its latest token; None if none of these logins got one."""
        return next((row.at for row in self.rows if not row.reason), None)

    def last_token_since(self, event: LoginEvent) -> datetime | None:
        """When it got its latest token after the login, for the same taxpayer where it is known."""
        return next(
            (
                row.at
                for row in self.rows
                if not row.reason
                and row.pk > event.pk
                and (not event.subject or (row.subject, row.actor) == (event.subject, event.actor))
            ),
            None,
        )

    def refused_since(self, moment: datetime) -> list[LatestLogin]:
        """Those that were refused since that moment."""
        return [row for row in self.rows if row.reason and row.at >= moment]


def latest_logins(client_id: str) -> LatestLogins:
    """The latest logins under this client ID; none for an empty one."""
    if not client_id:
        return LatestLogins([])
    found = LoginEvent.objects.filter(client_id=client_id).order_by("-pk")
    rows = [LatestLogin(*row) for row in found.values_list(*LatestLogin._fields)[: MAX_LOGINS + 1]]
    return LatestLogins(rows[:MAX_LOGINS], has_more=len(rows) > MAX_LOGINS)
