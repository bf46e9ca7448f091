"""Rows of the registry as they were at a moment of the past (contract 4: every change is recorded).

The history stores the values before each change. So at a moment a field had the value that the
first later change of it found; a field without a later change has had its value since then. What a
row keeps for good, when it was created and revoked, needs no history.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Min, Model, Q
from django.db.models.fields.json import KT

from taxpayers.facts.epochs.row import DECIDING_COLUMNS
from taxpayers.models import (
    Change,
    Credential,
    GrantedPermission,
    Intermediary,
    SystemUser,
    Taxpayer,
)

_Row = TypeVar("_Row", bound=Taxpayer | Intermediary | GrantedPermission)

_NEVER_CHANGED = ("id", "client_id", "taxpayer_id")
# The fields that services change, of each kind of record.
CHANGING: dict[type[Model], tuple[str, ...]] = {
    Taxpayer: ("name", "is_active"),
    Intermediary: ("is_active", "active_until"),
    GrantedPermission: ("valid_from", "valid_until", "first_used_at", "evidence"),
    SystemUser: (
        *(column for column in DECIDING_COLUMNS["system_users"] if column not in _NEVER_CHANGED),
        *("name", "blocked_by", "blocked_reason", "return_addresses"),
    ),
}
# What services change of a secret, by its name in the history of its system user.
_SECRET = (("secret_expires_at", "expires_at"), ("allowed_networks", "allowed_networks"))


def history_begins_at() -> datetime | None:
    """When the first change was recorded: of the time before it nothing is known."""
    return Change.objects.order_by("at").values_list("at", flat=True).first()


def rows_as_of(rows: Iterable[_Row], at: datetime) -> list[_Row]:
    """Those of these rows that were there at the moment, with its values: never save them."""
    present = [row for row in rows if row.created_at <= at]
    _undo_later_changes(present, at)
    for row in present:
        if isinstance(row, GrantedPermission) and row.revoked_at is not None:
            row.revoked_at = row.revoked_at if row.revoked_at <= at else None
    return present


def system_users_as_of(users: Iterable[SystemUser], at: datetime) -> list[SystemUser]:
    """The same for system users. Their taxpayers are not changed."""
    rows = list(users)
    recorded = _changes_of(rows).values("object_id").annotate(first=Min("at"))
    first = {row["object_id"]: row["first"] for row in recorded}
    # `created` has the time of the clock, which is a little later than that of the change.
    present = [row for row in rows if min(row.created, first.get(str(row.pk), row.created)) <= at]
    _undo_later_changes(present, at)
    return present


def secrets_as_of(owners: Sequence[SystemUser], at: datetime) -> dict[int, list[Credential]]:
    """The secrets that they had at the moment, by the system user's key, newest first."""
    firsts = {f"first_{name}": Min("pk", filter=Q(before__has_key=key)) for key, name in _SECRET}
    later = _changes_of(owners).filter(at__gt=at, before__has_key="secret")
    rows = later.values("object_id", secret=KT("before__secret")).annotate(**firsts)
    keys = {(row.pop("object_id"), row.pop("secret")): row for row in rows}
    before = _before(key for of_secret in keys.values() for key in of_secret.values() if key)
    found = defaultdict(list)
    issued = Credential.objects.filter(system_user__in=owners, created_at__lte=at)
    for row in issued.order_by("-pk"):
        of_secret = keys.get((str(row.system_user_id), str(row)), {})
        for key, name in _SECRET:
            if first := of_secret.get(f"first_{name}"):
                field: Any = Credential._meta.get_field(name)
                setattr(row, name, field.to_python(before[first][key]))
        if row.revoked_at is not None and row.revoked_at > at:
            row.revoked_at = None
        found[row.system_user_id].append(row)
    return found


def _undo_later_changes(rows: Sequence[Any], at: datetime) -> None:
    """In three queries at most, however many changes there are: the database picks the first."""
    if not rows:
        return
    fields = CHANGING[type(rows[0])]
    # The ids of a record's changes are in the order in which they took effect: it was locked.
    firsts = {f"first_{name}": Min("pk", filter=Q(before__has_key=name)) for name in fields}
    later = _changes_of(rows).filter(at__gt=at).values("object_id").annotate(**firsts)
    keys = {row.pop("object_id"): row for row in later}
    before = _before(key for of_row in keys.values() for key in of_row.values() if key)
    for row in rows:
        for name in fields:
            if key := keys.get(str(row.pk), {}).get(f"first_{name}"):
                setattr(row, name, row._meta.get_field(name).to_python(before[key][name]))


def _changes_of(rows: Sequence[Model]) -> Any:
    """All changes of these rows of one kind, in no order."""
    kind = rows[0]._meta.model_name if rows else ""
    keys = {str(row.pk) for row in rows}
    return Change.objects.filter(object_type=kind, object_id__in=keys).order_by()


def _before(keys: Iterable[int]) -> dict[int, dict[str, Any]]:
    """The values before each of these changes."""
    return dict(Change.objects.filter(pk__in=set(keys)).values_list("pk", "before"))
