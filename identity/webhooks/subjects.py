"""Of which record a change is, in the words and identifiers of the management API."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from identity.management_api import BASE_PATH
from taxpayers import models


@dataclass(frozen=True, slots=True)
class Subject:
    """A record: its kind, its public identifier, and its address in the management API."""

    kind: str
    id: str

    @property
    def path(self) -> str:
        return f"/{BASE_PATH}/{KINDS[self.kind]}/{self.id}"

    def as_json(self) -> dict[str, str]:
        """No name, and nothing that is secret: who needs more reads the record."""
        return {"kind": self.kind, "id": self.id, "path": self.path}


KINDS = {  # and the list of each in the management API
    "taxpayer": "taxpayers",
    "intermediary": "intermediaries",
    "permission": "permissions",
    "permission_request": "permission-requests",
    "system_user": "system-users",
}


def subject_of(row: Model) -> Subject:
    """The record itself."""
    match row:
        case models.Taxpayer():
            return Subject("taxpayer", str(row.identifier))
        case models.Intermediary():
            return Subject("intermediary", str(row.taxpayer.identifier))
        case models.GrantedPermission():
            return Subject("permission", str(row.pk))
        case models.PermissionRequest():
            return Subject("permission_request", str(row.pk))
        case models.SystemUser():
            return Subject("system_user", row.client_id)
        case _:
            raise TypeError(f"no kind of the management API: {row!r}")


_ROWS: Mapping[str, Callable[[], Any]] = {
    "taxpayer": models.Taxpayer.objects.all,
    "intermediary": lambda: models.Intermediary.objects.select_related("taxpayer"),
    "grantedpermission": models.GrantedPermission.objects.all,
    "permissionrequest": models.PermissionRequest.objects.all,
    "systemuser": models.SystemUser.objects.all,
}


def subjects_of(changes: Iterable[models.Change]) -> dict[int, Subject]:
    """The records of these changes, by the ids of the changes; without those that are not there.

    An export is a change of no record: it names a kind only.
    """
    keys: dict[str, set[str]] = {}
    listed = [change for change in changes if change.object_type in _ROWS and change.object_id]
    for change in listed:
        keys.setdefault(change.object_type, set()).add(change.object_id)
    rows = {
        (name, str(row.pk)): row
        for name, ids in keys.items()
        for row in _ROWS[name]().filter(pk__in=ids)
    }
    return {
        change.pk: subject_of(rows[key])
        for change in listed
        if (key := (change.object_type, change.object_id)) in rows
    }
