"""On what terms a system user may log in: until when, with which scopes, how often."""

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
    overwrites: ClassVar = {"expires": "expires_at"}

    expires = LastDayField(
        label=gettext_lazy("Last day"),
        required=False,
        help_text=gettext_lazy("Without a day it does not expire."),
    )
    reason = ReasonField()


class ExtendSeveralForm(TaskForm):
    """Needs a day: a field that begins empty must not make all of them last for good."""

    expires = LastDayField(label=gettext_lazy("Last day"))
    reason = ReasonField()


class ExtendSystemUser(Task):
    name = "extend_system_user"
    title = gettext_lazy("Extend the system user")
    button = gettext_lazy("Extend")
    says = gettext_lazy("Sets the last day on which it may log in. To stop it at once, block it.")
    icon = "event"
    form = ExtendForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> dict[str, Any]:
        until = record.expires_at
        return {"expires": timezone.localtime(until).date() if until else None}

    @transaction.atomic
    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        if "opened" in data:  # not where the same day is set for several
            data = ExtendForm.entered(record, data)
        return extend_system_user(
            system_user=record, expires_at=data["expires"], reason=data["reason"], by=by, at=at
        )

    def done(self, result: SystemUser) -> str:
        return _("The last day of {name} is set.").format(name=result)


class ChangeForm(EditConflictForm):
    overwrites: ClassVar = {
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
    button = gettext_lazy("Change")
    says = gettext_lazy("Holds for every login from now on.")
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
        entered = ChangeForm.entered(record, data)
        return change_system_user(system_user=record, by=by, at=at, **entered)

    def done(self, result: SystemUser) -> str:
        return _("{name} is changed.").format(name=result)
