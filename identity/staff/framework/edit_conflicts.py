"""Edit conflicts: a form that was opened before another person's change does not undo it.

The form carries the values that the record had when it was opened. If the record has others by now,
the form is refused once and names them; to submit it again overwrites the change on purpose.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Unpack

from django import forms
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext as _

from identity.staff.display import display_value
from identity.staff.framework import fields
from identity.staff.framework.tasks import Call, Data, Task, TaskForm
from taxpayers.services import ServiceError


class _OriginalValuesField(forms.CharField):
    """Hidden. After a refusal the form sends the current values instead."""

    widget = forms.HiddenInput

    def bound_data(self, data: Any, initial: Any) -> Any:
        return initial


class EditConflictForm(TaskForm):
    watched: ClassVar[Mapping[str, str]]  # each field, and the attribute of the record

    original = _OriginalValuesField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["original"] = json.dumps(self._values(self.record))

    def clean(self) -> None:
        if self._is_outdated(self.record, self.cleaned_data):
            self.add_error(None, self._message(self.record))

    @classmethod
    def values_for_service(cls, row: Model, data: Mapping[str, Any]) -> dict[str, Any]:
        """The entered values; `row`: the record, locked. Raises ServiceError if it has changed."""
        if cls._is_outdated(row, data):
            raise ServiceError(cls._message(row))
        return {field: value for field, value in data.items() if field != "original"}

    @classmethod
    def _values(cls, record: Any) -> dict[str, Any]:
        return {field: _comparable(getattr(record, name)) for field, name in cls.watched.items()}

    @classmethod
    def _is_outdated(cls, record: Any, data: Mapping[str, Any]) -> bool:
        """Whether the entered values would undo a change; those that it has by now do not."""
        values = cls._values(record)
        entered = {field: _comparable(data.get(field)) for field in values}
        return data.get("original") != json.dumps(values) and entered != values

    @classmethod
    def _message(cls, record: Any) -> str:
        now = (
            f"{cls.base_fields[field].label}: {display_value(getattr(record, name)) or _('none')}"
            for field, name in cls.watched.items()
        )
        return _(
            "Nothing was saved: this record was changed after you opened the form. It has now:"
            " {values}. To keep your values, submit again."
        ).format(values="; ".join(now))


class RenameForm(EditConflictForm):
    watched: ClassVar = {"name": "name"}

    name = fields.NameField()


class EditTask(Task):
    """Changes fields of a record, unless they were changed meanwhile."""

    form: ClassVar[type[EditConflictForm]]

    def initial(self, request: HttpRequest, record: Any, at: datetime) -> dict[str, Any]:
        return {field: getattr(record, name) for field, name in self.form.watched.items()}

    @transaction.atomic
    def perform(self, record: Any, data: Data, **call: Unpack[Call]) -> Any:
        values = self.form.values_for_service(self.lock(record, call["by"]), data)
        return super().perform(record, values, **call)


def _comparable(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case list():
            return " ".join(value)
        case _:
            return value
