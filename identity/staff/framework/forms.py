"""The form of a task. It asks why, where its operation does."""

from typing import Any, ClassVar

from django import forms
from django.conf import settings

from identity.staff.framework.fields import EvidenceField, ReasonField
from identity.staff.sessions import UnsavedEntries
from taxpayers.operations import Operation, Reason


class TaskForm(forms.Form):
    """The form of a task. Screen readers read each error with its field.

    `restored`: what was entered before a sign-in, if the form shows it again. `decides`: the fields
    that change the preview of a task for several records.
    """

    restored: UnsavedEntries | None = None
    decides: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, data: Any = None, files: Any = None, *, record: Any = None, initial: Any = None
    ) -> None:
        super().__init__(data, files, initial=initial)
        self.record = record
        for field in self.fields.values():
            if isinstance(field, EvidenceField):
                field.required = settings.EVIDENCE_REQUIRED


def with_reason(form: type[TaskForm], operation: Operation) -> type[TaskForm]:
    """The form, which asks why if the operation does; one that asks in its own way is left."""
    is_asked = operation.reason in (Reason.REQUIRED, Reason.ALWAYS)
    if not is_asked or "reason" in form.base_fields:
        return form
    return type(form.__name__, (form,), {"reason": ReasonField(), "__doc__": form.__doc__})
