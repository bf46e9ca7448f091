"""What ends soon, of all kinds in one order. Each kind is read from one index, and bounded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model

from identity.staff.expiring.kinds import KIND_NAMES, EndingKind
from identity.staff.expiring.last_use import last_uses
from identity.staff.expiring.periods import Period, days_left
from taxpayers.models import Credential, Taxpayer
from tokens.models import ProtectedApi, ProtectedApiSecret

MAX_ROWS = 1_000

_Secret = Credential | ProtectedApiSecret
Key = tuple[datetime, str, int]  # the end, the name of the kind, the key of the record


@dataclass(frozen=True, slots=True)
class ExpiringRow:
    """One line of the list."""

    kind: EndingKind
    record: Any
    page: Model
    owner: Taxpayer | ProtectedApi
    end: datetime
    left: str
    last_use: str
    note: datetime | None  # of a secret: until when another one of its owner is valid

    @property
    def value(self) -> str:
        """Names the row in a form."""
        return f"{self.kind.name}:{self.record.pk}"


def keys_of(kinds: Iterable[EndingKind], period: Period) -> tuple[list[Key], bool]:
    """What ends in the period, in the order of the list: MAX_ROWS at most, and if there is more."""
    found: list[Key] = []
    for kind in kinds:
        order = [f"-{kind.end}", "-pk"] if period.is_past else [kind.end, "pk"]
        bounds = {f"{kind.end}__gte": period.since, f"{kind.end}__lt": period.before}
        rows = kind.rows().filter(**bounds).order_by(*order).values_list(kind.end, "pk")
        found += [(end, kind.name, key) for end, key in rows[: MAX_ROWS + 1]]
    found.sort(reverse=period.is_past)
    return found[:MAX_ROWS], len(found) > MAX_ROWS


def rows_of(keys: Sequence[Key], at: datetime) -> list[ExpiringRow]:
    """The lines for these keys, in their order."""
    by_kind: dict[str, list[int]] = {}
    for _end, name, key in keys:
        by_kind.setdefault(name, []).append(key)
    records = {name: KIND_NAMES[name].load(pks) for name, pks in by_kind.items()}
    present = [
        (end, KIND_NAMES[name], records[name][key])
        for end, name, key in keys
        if key in records[name]
    ]
    used = last_uses([record for _end, _kind, record in present], at)
    others = _other_secrets([record for _end, _kind, record in present], at)
    return [
        ExpiringRow(
            kind=kind,
            record=record,
            page=kind.page(record),
            owner=kind.owner(record),
            end=end,
            left=days_left(end, at),
            last_use=used[record],
            note=others.get(record),
        )
        for end, kind, record in present
    ]


def _other_secrets(records: Sequence[Any], at: datetime) -> dict[Any, datetime]:
    """For each secret, the end of another live one of the same owner that ends later."""
    secrets: list[_Secret] = [
        record for record in records if isinstance(record, Credential | ProtectedApiSecret)
    ]
    users = {owner for model, owner in map(_owner, secrets) if model is Credential}
    apis = {owner for model, owner in map(_owner, secrets) if model is ProtectedApiSecret}
    live: list[_Secret] = [
        *Credential.objects.filter(system_user__in=users, slot__isnull=False, expires_at__gte=at),
        *ProtectedApiSecret.objects.filter(
            protected_api__in=apis, revoked_at=None, expires_at__gte=at
        ),
    ]
    later: dict[Any, datetime] = {}
    for secret in secrets:
        ends = [
            other.expires_at
            for other in live
            if _owner(other) == _owner(secret) and other.expires_at > secret.expires_at
        ]
        if ends:
            later[secret] = max(ends)
    return later


def _owner(secret: _Secret) -> tuple[type, int]:
    if isinstance(secret, Credential):
        return Credential, secret.system_user_id
    return ProtectedApiSecret, secret.protected_api_id
