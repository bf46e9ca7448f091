"""Undo of an import of taxpayers, while nothing was built upon them (contract 4).

They are removed, so that the right file can be imported; the history has them before and after.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Unpack

from django.db import transaction
from django.db.models import BigIntegerField, QuerySet
from django.db.models.functions import Cast
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.operations import Operation
from taxpayers.services.history import Asked, change_of, context_of, makes, of_task
from taxpayers.services.import_lock import one_import_at_a_time
from taxpayers.services.taxpayers import registration_fields
from taxpayers.validation import refuse_if

_BATCH = 1_000


def imported_by(change: Change) -> "QuerySet[Taxpayer]":
    """The taxpayers that are left of those that the import of this change registered."""
    keys = _registrations(change).annotate(key=Cast("object_id", BigIntegerField()))
    return Taxpayer.objects.filter(pk__in=keys.values("key")).order_by("pk")


def why_not_undone(change: Change, _at: datetime) -> str:
    """Why this is no change of an import that can be undone; empty if it can.

    Of a large import it looks at the last rows only: pages ask often. `undo_import` looks at all.
    """
    if change.action != actions.IMPORT_REGISTRY.name:
        return _("This is not an import of taxpayers.")
    newest = _registrations(change).values_list("object_id", flat=True)[:_BATCH]
    keys = [int(key) for key in newest]
    if not Taxpayer.objects.filter(pk__in=keys).exists():
        return _("This import was undone.")
    return _why_used(keys, change)


def _why_used(keys: list[int], change: Change) -> str:
    """What was built upon one of these taxpayers of the import; empty if nothing."""
    for model in (SystemUser, Intermediary, GrantedPermission):
        rows = model._default_manager.filter(taxpayer__in=keys).select_related("taxpayer")
        for row in rows.order_by()[:1]:  # in an order PostgreSQL may read the whole table for it
            return _built(str(row.taxpayer))
    changes = Change.objects.filter(object_type=change.object_type, object_id__in=map(str, keys))
    for later in changes.exclude(task_id=change.task_id).order_by()[:1]:
        return _built(later.label)
    return ""


UNDO_IMPORT = Operation(
    actions.UNDO_IMPORT,
    "Undo the import",
    "Removes every taxpayer that this import registered, so that the right file can be"
    " imported. The history shows both.",
    refusal=why_not_undone,
    is_danger=True,
)


@contextmanager
def _while_none_is_imported() -> Iterator[None]:
    # On SQLite who waits for a transaction would not be told that an import is running.
    with one_import_at_a_time(), transaction.atomic():
        yield


@makes(UNDO_IMPORT, "change", _while_none_is_imported)
def undo_import(*, change: Change, **asked: Unpack[Asked]) -> int:
    """Remove every taxpayer that this import registered, all or none; how many those were."""
    asked["by"] = asked["by"].in_one_task()
    context = context_of(UNDO_IMPORT, **asked)
    # Who refers to one of them waits for the lock, and then finds it gone.
    keys = list(imported_by(change).select_for_update().values_list("pk", flat=True))
    refuse_if(why_not_undone(change, context.at))
    for start in range(0, len(keys), _BATCH):
        batch = keys[start : start + _BATCH]
        refuse_if(_why_used(batch, change))
        rows = Taxpayer.objects.filter(pk__in=batch)
        Change.objects.bulk_create(
            change_of(row, context, before=registration_fields(row), after={}) for row in rows
        )
        rows.delete()
    return len(keys)


def _registrations(change: Change) -> "QuerySet[Change]":
    return of_task(Change.objects.filter(action=change.action), change.task_id)


def _built(taxpayer: str) -> str:
    return _(
        "{taxpayer} was changed since, or is used: it has a system user, a permission or a role."
        " Only an import upon which nothing was built can be undone."
    ).format(taxpayer=taxpayer)
