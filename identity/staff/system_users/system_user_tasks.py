"""The task that changes the name, scopes or limit of a system user (contract 3 and 4)."""

from datetime import datetime
from typing import Any, ClassVar

from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from identity.staff.framework.edit_conflicts import EditConflictForm, EditTask
from identity.staff.framework.forms import (
    CheckboxesField,
    LimitField,
    NameField,
    ReasonField,
    scope_choices,
)
from taxpayers.models import SystemUser
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


class ChangeSystemUser(EditTask):
    operation = CHANGE_SYSTEM_USER
    gives_access = True
    icon = "edit"
    form = ChangeForm
    done = gettext_lazy("{name} is changed.")

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> dict[str, Any]:
        return super().initial(request, record, at) | {"scopes": record.scopes.split()}
