"""System users that started to fail: they got tokens in the last days, and now only refusals.

A limited number of the latest logins is read, so the cost is limited.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import DateTimeField
from django.db.models.expressions import RawSQL

from taxpayers.models import SystemUser
from taxpayers.sandbox.users import sandbox_users
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent

LOOKBACK = timedelta(hours=24)
STARTED_WITHIN = timedelta(days=7)  # a client that fails for longer is not new
MIN_REFUSALS = 2  # one may be a mistake
_MAX_REFUSALS, _MAX_CLIENTS, _MAX_LOGINS = 5_000, 30, 1_000

# Reads the index of a client's logins, the newest first. The limit is for a client that retries
# all the time: it may have failed thousands of times since its last token.
_LAST_TOKEN = f"""(
    SELECT max(at) FROM (
        SELECT at, reason FROM login_events
        WHERE login_events.client_id = system_users.client_id
        ORDER BY login_events.id DESC LIMIT {_MAX_LOGINS}
    ) AS latest
    WHERE reason = ''
)"""  # noqa: S608 - put together from a constant


@dataclass(frozen=True, slots=True)
class FailingClient:
    """`last_token_at` is None if none of its latest logins got a token, and there are very many.

    `refusals` are those since `failing_since`: since the last token, of the last 24 hours at most.
    `reason` is why the latest of them was refused.
    """

    system_user: SystemUser
    last_token_at: datetime | None
    failing_since: datetime
    refusals: int
    reason: str


_Refusals = list[tuple[datetime, str]]  # the newest first


def failing_clients(at: datetime) -> list[FailingClient]:
    """Clients with MIN_REFUSALS in the last 24 hours, all of them after their last token.

    The latest last token comes first.
    """
    refusals: dict[int, _Refusals] = defaultdict(list)
    latest = (
        LoginEvent.objects.filter(
            pk__gte=first_id(at - LOOKBACK),
            pk__lt=first_id(at + LOOKBACK),  # reads no partition of future months
            system_user__isnull=False,
        )
        .exclude(reason="")
        .exclude(system_user__in=sandbox_users())
        .order_by("-pk")
        .values_list("system_user_id", "at", "reason")
    )
    for system_user_id, moment, reason in latest[:_MAX_REFUSALS]:
        assert system_user_id is not None  # noqa: S101 - filtered
        refusals[system_user_id].append((moment, reason))
    often = {pk: found for pk, found in refusals.items() if len(found) >= MIN_REFUSALS}
    worst = sorted(often, key=lambda pk: -len(often[pk]))[:_MAX_CLIENTS]
    candidates = (
        SystemUser.objects.filter(pk__in=worst)
        .select_related("taxpayer")
        .annotate(last_token_at=RawSQL(_LAST_TOKEN, (), output_field=DateTimeField()))  # noqa: S611 - a constant
    )
    failing = [client for row in candidates for client in _failing(row, often[row.pk], at)]
    return sorted(failing, key=lambda row: row.last_token_at or at - LOOKBACK, reverse=True)


def _failing(row: SystemUser, found: _Refusals, at: datetime) -> list[FailingClient]:
    last: datetime | None = row.last_token_at  # type: ignore[attr-defined]  # annotated
    if last is None and len(found) < _MAX_LOGINS:
        return []  # it never had a token, so nothing has changed
    if last is not None and last < at - STARTED_WITHIN:
        return []
    refusals = sum(last is None or moment > last for moment, _reason in found)
    if refusals < MIN_REFUSALS:
        return []
    since = max(last or at - LOOKBACK, at - LOOKBACK)
    return [FailingClient(row, last, since, refusals, reason=found[0][1])]
