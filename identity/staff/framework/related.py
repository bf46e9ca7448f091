"""Which changes belong to a record, and the record that belongs to a change."""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from identity.staff.display import page_url
from identity.staff.framework.lists import key_in
from taxpayers import actions
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser, Taxpayer

MAX_RELATED = 200  # of each kind: the newest ones
ORDER = ("-at", "-by", "-id")  # the changes of a task are next to each other; an index has it


def changes_about(record: Model) -> "QuerySet[Change]":
    """The changes of the record and of what belongs to it, newest first.

    To a taxpayer belongs also what was registered and removed before under its identifier.
    """
    condition = _are([record])
    for related in _related(record):
        condition |= _are(related)
    if isinstance(record, Taxpayer):
        removed = removals_of(record.identifier).order_by().values_list("object_id", flat=True)
        condition |= Q(object_type=record._meta.model_name, object_id__in=list(removed))
    rows = Change.objects.filter(condition)
    # In the order of no index: the database first finds these few changes, and then sorts them.
    return rows.order_by(Coalesce("at", "at").desc(), "-by", "-id")


def removals_of(identifier: TaxpayerId) -> "QuerySet[Change]":
    """Each time that a taxpayer with this identifier was removed."""
    removed = Change.objects.filter(action=actions.UNDO_IMPORT.name, before__tin=identifier.tin)
    return removed.filter(before__rob=identifier.rob)


def removal_of(request: HttpRequest, key: str) -> Change | None:
    """The removal of the taxpayer that had this key; None for who may not see the history."""
    if key_in(key) is None or not request.user.has_perm("taxpayers.view_change"):
        return None
    of_taxpayer = Change.objects.filter(object_type=Taxpayer._meta.model_name, object_id=key)
    return of_taxpayer.filter(action=actions.UNDO_IMPORT.name).first()


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


def record_link(request: HttpRequest, change: Change) -> str:
    """The address of the record; empty if it has no page, or none for this person, or is gone."""
    model = _models().get(change.object_type)
    if model is None or not change.object_id or change.action == actions.UNDO_IMPORT.name:
        return ""
    may_view = request.user.has_perm(f"{model._meta.app_label}.view_{model._meta.model_name}")
    return page_url(model, change.object_id) if may_view else ""


@cache
def _models() -> dict[str, type[Model]]:
    """Every kind of record with a page, by the name that the history stores."""
    return {
        str(model._meta.model_name): model
        for model in apps.get_models()
        if admin.site.is_registered(model)
    }


def revocations_of(
    request: HttpRequest, permissions: Collection[GrantedPermission]
) -> dict[int, Change]:
    """The revocation of each, by the key of the permission; empty for who may not see it."""
    keys = [str(row.pk) for row in permissions if row.revoked_at is not None]
    if not keys or not request.user.has_perm("taxpayers.view_change"):
        return {}
    found = Change.objects.filter(
        object_type=GrantedPermission._meta.model_name,
        object_id__in=keys,
        action=actions.REVOKE_PERMISSION.name,
    )
    return {int(change.object_id): change for change in found.order_by()}
