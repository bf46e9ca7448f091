"""Which changes belong to a record: its own, and those of the records that belong to it."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Coalesce

from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser, Taxpayer

MAX_RELATED = 200  # of each kind: the newest ones


def changes_about(record: Model) -> "QuerySet[Change]":
    """The changes of the record and of what belongs to it, newest first.

    To a taxpayer belong its role, its system users with their secrets, and the permissions that it
    granted or was granted; to an intermediary the permissions that it was granted.
    """
    rows = Change.objects.filter(_condition(record))
    # In the order of no index: the database first finds these few changes, and then sorts them.
    return rows.order_by(Coalesce("at", "at").desc(), "-by", "-id")


def _condition(record: Model) -> Q:
    condition = _are([record])
    for rows in _related(record):
        condition |= _are(rows)
    return condition


def _related(record: Any) -> Iterator[list[Any]]:
    match record:
        case Taxpayer():
            roles = list(Intermediary.objects.filter(taxpayer=record))
            yield roles
            yield _newest(SystemUser.objects.filter(taxpayer=record))
            yield _newest(GrantedPermission.objects.filter(taxpayer=record))
            for role in roles:
                yield from _related(role)
        case Intermediary():
            yield _newest(GrantedPermission.objects.filter(intermediary=record))


def _newest(rows: "QuerySet[Any]") -> list[Any]:
    return list(rows.only("pk").order_by("-pk")[:MAX_RELATED])


def _are(rows: list[Any]) -> Q:
    """The changes of these rows of one kind; no change if there are none."""
    if not rows:
        return Q(pk__in=())
    keys = [str(row.pk) for row in rows]
    return Q(object_type=rows[0]._meta.model_name, object_id__in=keys)
