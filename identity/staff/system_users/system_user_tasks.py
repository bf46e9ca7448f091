"""The task that changes the name, scopes or limit of a system user (contract 3 and 4)."""

from datetime import datetime
from typing import Any, ClassVar

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.edit_conflicts import EditConflictForm
from identity.staff.framework.forms import (
    CheckboxesField,
    LimitField,
    NameField,
    ReasonField,
    scope_choices,
)
from identity.staff.framework.tasks import Task
from taxpayers.models import SystemUser
from taxpayers.services import Author, change_system_user
from taxpayers.services.system_users import CHANGE_SYSTEM_USER


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
    operation = CHANGE_SYSTEM_USER
    gives_access = True
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
