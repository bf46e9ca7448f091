"""Logins of the last 24 hours: their chart, the top reasons, and clients that started to fail."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import DateTimeField
from django.db.models.expressions import RawSQL
from django.utils import formats, timezone

from taxpayers.models import SystemUser
from taxpayers.sandbox.users import sandbox_users
from tokens.login_events.counting import CountingProgress, by_hour
from tokens.login_events.partitions import first_id
from tokens.models import LoginCount, LoginEvent

HOURS = 24
_MAX_REASONS = 5
_CLOCKS_DIFFER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class HourOfLogins:
    begins: datetime
    issued: int
    refused: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """The bars, the oldest first; `lacks_latest`: older logins must be counted before."""

    bars: tuple[HourOfLogins, ...]
    reasons: Counter[str]
    lacks_latest: bool

    @property
    def issued(self) -> int:
        return sum(bar.issued for bar in self.bars)

    @property
    def refused(self) -> int:
        return sum(bar.refused for bar in self.bars)

    @property
    def top_reasons(self) -> list[tuple[str, int]]:
        return sorted(self.reasons.items(), key=lambda row: (-row[1], row[0]))[:_MAX_REASONS]


BAR_WIDTH, GAP, HEIGHT = 7, 2, 40
_LEAST = 3  # the height of the smallest number that is not 0


def draw_bars(rows: Sequence[tuple[HourOfLogins, str]]) -> dict[str, Any]:
    """The chart of these hours, each with its address, as an SVG: it needs no script."""
    highest = max(hour.issued + hour.refused for hour, _url in rows) or 1
    bars = []  # the parts of each from below: y and height
    for position, (hour, url) in enumerate(rows):
        parts: list[tuple[int, int]] = []
        top, numbers = HEIGHT, (hour.issued, hour.refused)
        for number in numbers:
            height = max(_LEAST, round(HEIGHT * number / highest)) if number else 0
            top -= height
            parts.append((top, height))
        label = formats.date_format(timezone.localtime(hour.begins), "H:i")
        x = position * (BAR_WIDTH + GAP)
        bars.append({"label": label, "numbers": numbers, "x": x, "parts": parts, "url": url})
    width = len(bars) * (BAR_WIDTH + GAP) - GAP
    return {"bars": bars, "width": width, "height": HEIGHT, "bar_width": BAR_WIDTH}


def traffic(at: datetime, counted: CountingProgress) -> Traffic:
    """The traffic until now: stored hourly counts, plus a live count of the latest logins."""
    this_hour = timezone.localtime(at, timezone.get_default_timezone())
    # In UTC no hour is missing or repeated when clocks change.
    last = this_hour.replace(minute=0, second=0, microsecond=0).astimezone(UTC)
    begins = [last - timedelta(hours=back) for back in range(HOURS - 1, -1, -1)]
    live = {} if counted.is_behind else by_hour(counted.next_id, first_id(at + _CLOCKS_DIFFER))
    stored = LoginCount.objects.filter(hour__gte=begins[0], hour__lt=at)
    found = [Counter[str]() for _hour in begins]
    for hour, reason, logins in (
        *stored.values_list("hour", "reason", "logins"),
        *((hour, reason, logins) for (hour, reason), logins in live.items()),
    ):
        if 0 <= (place := (hour - begins[0]) // timedelta(hours=1)) < HOURS:
            found[place][reason] += logins
    reasons = sum(found, Counter[str]())
    del reasons[""]
    bars = (
        HourOfLogins(hour, by_reason[""], by_reason.total() - by_reason[""])
        for hour, by_reason in zip(begins, found, strict=True)
    )
    return Traffic(tuple(bars), reasons, lacks_latest=counted.is_behind)


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
    system_user: SystemUser
    last_token_at: datetime | None  # None: none of its latest logins got one, of very many
    failing_since: datetime  # the last token, at most 24 hours ago
    refusals: int  # since then
    reason: str  # of the latest of them


_Refusals = list[tuple[datetime, str]]  # the newest first


def failing_clients(at: datetime) -> list[FailingClient]:
    """Clients with MIN_REFUSALS in 24 hours, all after their last token; the latest token first."""
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
