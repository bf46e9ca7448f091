"""Tasks for a system user: change its last day, name, scopes or limit (contract 3 and 4)."""

from datetime import datetime
from typing import Any, ClassVar

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.edit_conflicts import EditConflictForm
from identity.staff.framework.forms import (
    CheckboxesField,
    LastDayField,
    LimitField,
    NameField,
    ReasonField,
    TaskForm,
    scope_choices,
)
from identity.staff.framework.tasks import Task
from taxpayers.models import SystemUser
from taxpayers.services import Author, change_system_user, extend_system_user


class ExtendForm(EditConflictForm):
    watched: ClassVar = {"expires": "expires_at"}

    expires = LastDayField(
        label=gettext_lazy("Last day"),
        required=False,
        help_text=gettext_lazy("Leave empty for no end date."),
    )
    reason = ReasonField()


class BulkExtendForm(TaskForm):
    """Requires a day: an empty field must not remove the end date of all selected."""

    expires = LastDayField(label=gettext_lazy("Last day"))
    reason = ReasonField()


class ExtendSystemUser(Task):
    name = "extend_system_user"
    title = gettext_lazy("Change the last day of the system user")
    button_label = gettext_lazy("Change last day")
    description = gettext_lazy(
        "This is the last day on which it can log in. To stop it at once, block it."
    )
    icon = "event"
    form = ExtendForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> dict[str, Any]:
        until = record.expires_at
        return {"expires": timezone.localtime(until).date() if until else None}

    @transaction.atomic
    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        if "original" in data:  # not in the bulk form
            data = ExtendForm.values_for_service(record, data)
        return extend_system_user(
            system_user=record, expires_at=data["expires"], reason=data["reason"], by=by, at=at
        )

    def success_message(self, result: SystemUser) -> str:
        return _("The last day of {name} is set.").format(name=result)


class ChangeForm(EditConflictForm):
    watched: ClassVar = {
        "name": "name",
        "scopes": "scopes",
        "logins_per_minute": "logins_per_minute",
    }

    name = NameField()
    scopes = CheckboxesField(label=gettext_lazy("Scopes"), choices=scope_choices)
    logins_per_minute = LimitField()
    reason = ReasonField()


class ChangeSystemUser(Task):
    name = "change_system_user"
    title = gettext_lazy("Change name, scopes or limit")
    button_label = gettext_lazy("Change name, scopes or limit")
    description = gettext_lazy("Applies to every login from now on.")
    icon = "edit"
    form = ChangeForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> dict[str, Any]:
        return {
            "name": record.name,
            "scopes": record.scopes.split(),
            "logins_per_minute": record.logins_per_minute,
        }

    @transaction.atomic
    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        values = ChangeForm.values_for_service(record, data)
        return change_system_user(system_user=record, by=by, at=at, **values)

    def success_message(self, result: SystemUser) -> str:
        return _("{name} is changed.").format(name=result)
