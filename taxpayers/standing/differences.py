"""Records that differ from what their history says: they were changed by SQL (contract 5).

Every change of state is recorded with the new values, so the last one of each field must be the
value that the record has; and each record and each credential was recorded when it was made.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import Model

from taxpayers import actions
from taxpayers.keyset import batches_of
from taxpayers.models import (
    Change,
    Credential,
    GrantedPermission,
    Intermediary,
    PermissionRequest,
    SystemUser,
    Taxpayer,
)
from taxpayers.standing.as_of import CHANGING

_AT_ONCE = 500
# What the history of a system user says of one of its credentials, by the names of its columns.
_OF_CREDENTIALS = {
    "secret_expires_at": "expires_at",
    "secret_revoked_at": "revoked_at",
    "allowed_networks": "allowed_networks",
    "certificate_name": "certificate_name",
    "kid": "kid",
}
# What is recorded only when it changes.
_NEW_CREDENTIAL = {"secret_revoked_at": None, "allowed_networks": ""}


@dataclass(slots=True)
class _Told:
    """What the history says of one record, as of its last change."""

    values: dict[str, Any]
    credentials: dict[str, dict[str, Any]] = field(
        default_factory=lambda: defaultdict(_NEW_CREDENTIAL.copy)
    )
    issued: Counter[str] = field(default_factory=Counter)  # credentials, by their last characters

    def hear(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """The next change."""
        hint: Any = after.get("secret")
        for name, value in after.items():
            of_credential = hint is not None and name in _OF_CREDENTIALS
            (self.credentials[hint] if of_credential else self.values)[name] = value
        self.issued[hint or ""] += hint is not None and "secret" not in before


@dataclass(frozen=True, slots=True)
class Compared:
    """One kind of record: what the history says of it are values of columns, and `more`."""

    model: type[Model]
    columns: tuple[str, ...]
    more: Callable[[Any], dict[str, Any]] = lambda _row: {}
    related: tuple[str, ...] = ()
    prefetched: tuple[str, ...] = ()
    credentials: Callable[[Any], Iterable[Credential]] = lambda _row: ()

    def differences(self) -> Iterator[str]:
        """One sentence for each, with both values; in the order of the records."""
        rows = self.model._default_manager.select_related(*self.related).order_by("pk")
        for some in batches_of(rows.prefetch_related(*self.prefetched), _AT_ONCE):
            told = self._told(str(row.pk) for row in some)
            for row in some:
                if any(self._of(row, told.get(str(row.pk)))):
                    yield from self._locked(row)
        yield from self._missing()

    def _locked(self, row: Model) -> Iterator[str]:
        """Read again while no service changes it: one may have done so in between."""
        rows = self.model._default_manager.filter(pk=row.pk)
        with transaction.atomic():
            for found in rows.select_for_update():
                yield from list(self._of(found, self._told([str(row.pk)]).get(str(row.pk))))

    def _told(self, keys: Iterable[str]) -> dict[str, _Told]:
        told: dict[str, _Told] = defaultdict(lambda: _Told(self._new()))
        changes = Change.objects.filter(
            object_type=self.model._meta.model_name, object_id__in=list(keys)
        )
        columns = changes.order_by("pk").values_list("object_id", "before", "after")
        for key, before, after in columns:
            told[key].hear(before, after)
        return told

    def _new(self) -> dict[str, Any]:
        """What a new record has, of that which is recorded only when it changes."""
        fields: list[Any] = [self.model._meta.get_field(name) for name in self.columns]
        fields = [one for one in fields if one.null or not callable(one.default)]
        return {one.name: one.get_default() for one in fields if one.null or one.has_default()}

    def _of(self, row: Model, told: _Told | None) -> Iterator[str]:
        named = f"{self.model._meta.verbose_name} {row}"
        if told is None:
            yield f"{named}: the history does not know it."
            return
        now = {name: getattr(row, name) for name in self.columns} | self.more(row)
        yield from _differing(named, now, told.values)
        stored = defaultdict(list)
        for credential in self.credentials(row):
            stored[str(credential)].append(credential)
        for hint in sorted(stored.keys() | +told.issued):
            name = f"{named}, credential {hint}"
            present, issued = stored[hint], told.issued[hint]
            if len(present) != issued:
                yield f"{name}: there are {len(present)}, and the history says {issued}."
            elif issued == 1:  # of several that end alike the history does not say which
                now = {name: getattr(present[0], of) for name, of in _OF_CREDENTIALS.items()}
                yield from _differing(name, now, told.credentials[hint])

    def _missing(self) -> Iterator[str]:
        kind = self.model._meta.model_name
        last = ""
        changes = Change.objects.filter(object_type=kind).order_by("object_id")
        keys = changes.values_list("object_id", flat=True).distinct()
        while some := list(keys.filter(object_id__gt=last)[:_AT_ONCE]):
            last = some[-1]
            found = self.model._default_manager.filter(pk__in=some).values_list("pk", flat=True)
            gone = set(some) - {str(pk) for pk in found}
            removed = changes.filter(object_id__in=gone, action=actions.UNDO_IMPORT.name)
            for key in sorted(gone.difference(removed.values_list("object_id", flat=True))):
                named = f"{self.model._meta.verbose_name} {key}"
                yield f"{named}: the history knows it, and it is gone."


def _differing(named: str, now: dict[str, Any], told: dict[str, Any]) -> Iterator[str]:
    for name in now.keys() & told.keys():
        value = now[name]
        plain = value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
        if plain != told[name]:
            yield f"{named}: {name} is {plain!r}, and the history says {told[name]!r}."


COMPARED = (
    Compared(Taxpayer, ("tin", "rob", *CHANGING[Taxpayer])),
    Compared(Intermediary, CHANGING[Intermediary], related=("taxpayer",)),
    Compared(
        GrantedPermission,
        ("revoked_at", *CHANGING[GrantedPermission]),
        lambda row: {"codes": sorted(code.pk for code in row.codes.all())},
        related=("taxpayer", "intermediary__taxpayer"),
        prefetched=("codes",),
    ),
    Compared(
        PermissionRequest,
        (
            *("codes", "valid_from", "valid_until", "replaces", "own_reference", "expires_at"),
            *("return_address", "state", "decided_at", "evidence", "permission_id"),
            *("name", "public_jwk", "system_user_id"),
        ),
        lambda row: {"taxpayer": str(row.asked)},
        prefetched=("intermediary__taxpayer",),
    ),
    Compared(
        SystemUser,
        CHANGING[SystemUser],
        lambda row: {"taxpayer": str(row.taxpayer.identifier)},
        related=("taxpayer",),
        prefetched=("credentials",),
        credentials=lambda row: row.credentials.all(),
    ),
)
