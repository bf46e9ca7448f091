"""Permission codes: the list, the page of one, and the task to add or change one (contract 4)."""

from datetime import datetime
from typing import ClassVar

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.framework.forms import CODE, TaskForm
from identity.staff.framework.lists import Context
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.tasks import Button, Task, task
from identity.staff.history.changes import recent_changes
from taxpayers.models import PermissionCode
from taxpayers.services.granted_permissions import SET_PERMISSION_CODE


class CodeForm(TaskForm):
    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=64,
        help_text=gettext_lazy(
            "Words with a-z, 0-9 and _, separated by colons. Example: documents:submit."
        ),
        widget=UnfoldAdminTextInputWidget(attrs=CODE),
    )
    description = forms.CharField(
        label=gettext_lazy("Description"), max_length=255, widget=UnfoldAdminTextInputWidget
    )


SetPermissionCode = task(
    Task,
    SET_PERMISSION_CODE,
    button_label=gettext_lazy("Add or change a code"),
    form=CodeForm,
    is_for_record=False,
)


class PermissionCodeAdmin(RecordAdmin):
    list_display = ("code", "description")
    ordering = ("code",)
    record_template = "staff/registry/permission_code.html"
    tasks: ClassVar = (SetPermissionCode,)

    def buttons(self, request: HttpRequest, record: PermissionCode, at: datetime) -> list[Button]:
        return self.related_buttons(
            request,
            PermissionCode,
            SetPermissionCode,
            code=record.code,
            description=record.description,
        )

    def record_context(self, request: HttpRequest, record: PermissionCode, at: datetime) -> Context:
        return {"changes": recent_changes(request, record)}
