"""Edit conflicts: a form that was opened before another person's change does not undo it.

The form carries the values that the record had when it was opened. If the record has other values
by now, the form is refused once and shows them. The values that the person entered stay in the
form; to submit it again overwrites the change on purpose.
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
from identity.staff.framework.forms import TaskForm
from identity.staff.framework.tasks import Call, Data, Task
from taxpayers.services import ServiceError
from taxpayers.services.history import lock_for_update


class _OriginalValuesField(forms.CharField):
    """Hidden. After a refusal the form shows, and sends, the current values instead."""

    widget = forms.HiddenInput

    def bound_data(self, data: Any, initial: Any) -> Any:
        return initial

    def clean(self, value: Any) -> dict[str, Any]:
        try:
            original = json.loads(value or "{}")
        except (ValueError, RecursionError):  # not what the form had sent
            original = None
        return original if isinstance(original, dict) else {}


class EditConflictForm(TaskForm):
    """A form that detects edit conflicts in the fields of `watched`."""

    watched: ClassVar[Mapping[str, str]]  # each field, and the attribute of the record

    original = _OriginalValuesField()

    def __init__(
        self, data: Any = None, files: Any = None, *, record: Any = None, initial: Any = None
    ) -> None:
        super().__init__(data, files, record=record, initial=initial)
        current = {
            field: _comparable(getattr(record, name)) for field, name in self.watched.items()
        }
        self.initial["original"] = json.dumps(current)

    def clean(self) -> None:
        conflicts = self._conflicts(self.record, self.cleaned_data)
        for field in conflicts:
            current = display_value(getattr(self.record, self.watched[field])) or _("none")
            text = _("A colleague changed this. It is now: {value}.")
            self.add_error(field, text.format(value=current))
        if conflicts:
            self.add_error(None, _conflict_message())

    @classmethod
    def values_for_service(cls, record: Model, data: Mapping[str, Any]) -> dict[str, Any]:
        """The entered values. Raises ServiceError if the record has changed since the form opened.

        Only inside a transaction: the record stays locked until its end.
        """
        assert transaction.get_connection().in_atomic_block  # noqa: S101 - see above
        if cls._conflicts(lock_for_update(record), data):
            raise ServiceError(_conflict_message())
        return {field: value for field, value in data.items() if field != "original"}

    @classmethod
    def _conflicts(cls, record: Model, data: Mapping[str, Any]) -> list[str]:
        """The fields that would undo a change. To enter the current value is no conflict."""
        conflicts = []
        for field, name in cls.watched.items():
            current = _comparable(getattr(record, name))
            is_unchanged = field in data["original"] and data["original"][field] == current
            is_same = field in data and _comparable(data[field]) == current
            if not is_unchanged and not is_same:
                conflicts.append(field)
        return conflicts


class EditTask(Task):
    """Changes fields of a record, unless they were changed meanwhile."""

    form: ClassVar[type[EditConflictForm]]

    def initial(self, request: HttpRequest, record: Any, at: datetime) -> dict[str, Any]:
        return {field: getattr(record, name) for field, name in self.form.watched.items()}

    @transaction.atomic
    def perform(self, record: Any, data: Data, **call: Unpack[Call]) -> Any:
        values = self.form.values_for_service(record, data)
        return super().perform(record, values, **call)


def _conflict_message() -> str:
    return _(
        "Nothing was saved: this record was changed after you opened the form. Compare the"
        " values. To keep your values, submit again."
    )


def _comparable(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case list():
            return " ".join(value)
        case _:
            return value
