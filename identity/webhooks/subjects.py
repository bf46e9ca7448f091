"""Of which record a change is, in the words and identifiers of the management API."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from identity.management_api import BASE_PATH
from taxpayers import models


@dataclass(frozen=True, slots=True)
class Subject:
    """A record: its kind and its public identifier."""

    kind: str
    id: str

    def as_json(self) -> dict[str, str]:
        """No name, and nothing that is secret: who needs more reads the record."""
        path = f"/{BASE_PATH}/{KINDS[self.kind]}/{self.id}"
        return {"kind": self.kind, "id": self.id, "path": path}


KINDS = {  # and the list of each in the management API
    "taxpayer": "taxpayers",
    "intermediary": "intermediaries",
    "permission": "permissions",
    "permission_request": "permission-requests",
    "system_user": "system-users",
}
# The kind of each model, and what names a record of it.
_OF_MODELS: Mapping[Any, tuple[str, Callable[[Any], object]]] = {
    models.Taxpayer: ("taxpayer", lambda row: row.identifier),
    models.Intermediary: ("intermediary", lambda row: row.taxpayer.identifier),
    models.GrantedPermission: ("permission", lambda row: row.pk),
    models.PermissionRequest: ("permission_request", lambda row: row.pk),
    models.SystemUser: ("system_user", lambda row: row.client_id),
}
_MODELS = {model._meta.model_name: model for model in _OF_MODELS}


def subject_of(row: Model) -> Subject:
    """The record itself. Raises KeyError for one that is no kind of the management API."""
    kind, name_of = _OF_MODELS[type(row)]
    return Subject(kind, str(name_of(row)))


def subjects_of(changes: Iterable[models.Change]) -> dict[int, Subject]:
    """The records of these changes, by the ids of the changes; without those that are not there.

    An export is a change of no record: it names a kind only.
    """
    keys: dict[str, set[str]] = {}
    listed = [change for change in changes if change.object_type in _MODELS and change.object_id]
    for change in listed:
        keys.setdefault(change.object_type, set()).add(change.object_id)
    rows = {
        (name, str(row.pk)): row
        for name, ids in keys.items()
        for row in _MODELS[name]
        .objects.filter(pk__in=ids)
        .select_related("taxpayer" if name == "intermediary" else None)
    }
    return {
        change.pk: subject_of(rows[key])
        for change in listed
        if (key := (change.object_type, change.object_id)) in rows
    }
