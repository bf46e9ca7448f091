"""A form that was opened before somebody else changed the record does not undo that change.

It carries what the record was when it was opened. Where that is so no longer it is refused, once,
with what the record is now: what was entered stays, and to send it again is then a decision.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext as _

from identity.staff.framework.forms import TaskForm
from identity.staff.templatetags.staff import format_moment
from taxpayers.services import ServiceError
from taxpayers.services.history import lock_for_update


class _OpenedField(forms.CharField):
    """Hidden. After a refusal it is sent with what the record is by then."""

    widget = forms.HiddenInput

    def bound_data(self, data: Any, initial: Any) -> Any:
        return initial

    def clean(self, value: Any) -> dict[str, Any]:
        try:
            opened = json.loads(value or "{}")
        except ValueError:
            opened = None
        return opened if isinstance(opened, dict) else {}


class EditConflictForm(TaskForm):
    """Refuses to undo what changed since it was opened."""

    overwrites: ClassVar[Mapping[str, str]]  # each field, and the attribute of the record

    opened = _OpenedField()

    def __init__(
        self, data: Any = None, files: Any = None, *, record: Any = None, initial: Any = None
    ) -> None:
        super().__init__(data, files, record=record, initial=initial)
        present = {field: _plain(getattr(record, name)) for field, name in self.overwrites.items()}
        self.initial["opened"] = json.dumps(present)

    def clean(self) -> None:
        changed = self._changed_meanwhile(self.record, self.cleaned_data)
        for field in changed:
            now = _shown(getattr(self.record, self.overwrites[field]))
            self.add_error(field, _("Changed meanwhile; it is now: {value}.").format(value=now))
        if changed:
            self.add_error(None, _refusal())

    @classmethod
    def entered(cls, record: Model, data: Mapping[str, Any]) -> dict[str, Any]:
        """What was entered, for the service. Raises ServiceError if the record changed meanwhile.

        Only inside a transaction: the record stays locked until its end.
        """
        assert transaction.get_connection().in_atomic_block  # noqa: S101 - see above
        if cls._changed_meanwhile(lock_for_update(record), data):
            raise ServiceError(_refusal())
        return {field: value for field, value in data.items() if field != "opened"}

    @classmethod
    def _changed_meanwhile(cls, record: Model, data: Mapping[str, Any]) -> list[str]:
        """The fields that would undo a change; who enters the same, or sends it twice, does not."""
        changed = []
        for field, name in cls.overwrites.items():
            present = _plain(getattr(record, name))
            is_as_opened = field in data["opened"] and data["opened"][field] == present
            is_entered = field in data and _plain(data[field]) == present
            if not is_as_opened and not is_entered:
                changed.append(field)
        return changed


def _refusal() -> str:
    return _(
        "Nothing was done: somebody changed this since you opened the form. Compare; if it shall"
        " be as you entered it, send it again."
    )


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case list():
            return " ".join(value)
        case _:
            return value


def _shown(value: Any) -> str:
    match value:
        case None | "":
            return _("none")
        case bool():
            return _("yes") if value else _("no")
        case datetime():
            return format_moment(value)
        case _:
            return str(value)
