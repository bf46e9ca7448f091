"""Clients that started to fail: they got tokens until some days ago, and now only refusals.

Looks at the latest refusals of known clients and no further, so its cost has a bound whatever
happens.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import DateTimeField
from django.db.models.expressions import RawSQL

from taxpayers.models import SystemUser
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent

LOOKED_BACK = timedelta(hours=24)
STARTED_WITHIN = timedelta(days=7)  # whoever fails for longer is no news
LEAST_REFUSALS = 2  # one is a slip
MOST_SHOWN = 10
_MOST_REFUSALS, _MOST_CLIENTS, _MOST_LOGINS = 5_000, 30, 1_000

# From the index of a client's logins, the newest first. The bound is for one that hammers: it may
# have failed thousands of times since.
_LAST_TOKEN = f"""(
    SELECT max(at) FROM (
        SELECT at, reason FROM login_events
        WHERE login_events.client_id = system_users.client_id
        ORDER BY login_events.id DESC LIMIT {_MOST_LOGINS}
    ) AS latest
    WHERE reason = ''
)"""  # noqa: S608 - put together from a constant


@dataclass(frozen=True, slots=True)
class FailingClient:
    """`last_token_at` is None if there is no token in its latest logins, which are very many.

    `refusals` are those of the last 24 hours; `reason` is why the latest of them was refused.
    """

    system_user: SystemUser
    last_token_at: datetime | None
    refusals: int
    reason: str


@dataclass(frozen=True, slots=True)
class FailingClients:
    """Who failed first is shown last; `has_more` than are shown."""

    clients: list[FailingClient]
    has_more: bool


_Refusals = list[tuple[datetime, str]]  # the newest first


def failing_clients(at: datetime) -> FailingClients:
    """Those with LEAST_REFUSALS in the last 24 hours since their last token of the last days."""
    refusals: dict[int, _Refusals] = defaultdict(list)
    latest = (
        LoginEvent.objects.filter(
            pk__gte=first_id(at - LOOKED_BACK),
            pk__lt=first_id(at + LOOKED_BACK),  # no partition of the months to come is looked at
            system_user__isnull=False,
        )
        .exclude(reason="")
        .order_by("-pk")
        .values_list("system_user_id", "at", "reason")
    )
    for system_user_id, moment, reason in latest[:_MOST_REFUSALS]:
        assert system_user_id is not None  # noqa: S101 - filtered
        refusals[system_user_id].append((moment, reason))
    often = {pk: found for pk, found in refusals.items() if len(found) >= LEAST_REFUSALS}
    worst = sorted(often, key=lambda pk: -len(often[pk]))[:_MOST_CLIENTS]
    candidates = (
        SystemUser.objects.filter(pk__in=worst)
        .select_related("taxpayer")
        .annotate(last_token_at=RawSQL(_LAST_TOKEN, (), output_field=DateTimeField()))  # noqa: S611 - a constant
    )
    failing = [client for row in candidates for client in _failing(row, often[row.pk], at)]
    failing.sort(key=lambda client: client.last_token_at or at - LOOKED_BACK, reverse=True)
    return FailingClients(failing[:MOST_SHOWN], has_more=len(failing) > MOST_SHOWN)


def _failing(row: SystemUser, found: _Refusals, at: datetime) -> list[FailingClient]:
    last: datetime | None = row.last_token_at  # type: ignore[attr-defined]  # annotated
    if last is None and len(found) < _MOST_LOGINS:
        return []  # it never had a token, so nothing has changed
    if last is not None and last < at - STARTED_WITHIN:
        return []
    refusals = sum(last is None or moment > last for moment, _reason in found)
    if refusals < LEAST_REFUSALS:
        return []
    return [FailingClient(row, last, refusals, reason=found[0][1])]
