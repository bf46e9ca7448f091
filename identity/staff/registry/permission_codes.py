"""Permission codes: their list and pages; and the tasks that grant and revoke them (contract 4)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.framework import fields
from identity.staff.framework.badges import REVOKED, badge_of_permission
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.tasks import Button, Preview, Task, TaskForm, task
from taxpayers.models import GrantedPermission, PermissionCode
from taxpayers.services import granted_permissions


class CodeForm(TaskForm):
    code = fields.CodeField(
        label=gettext_lazy("Code"),
        max_length=64,
        help_text=gettext_lazy(
            "Words with a-z, 0-9 and _, separated by colons. Example: documents:submit."
        ),
    )
    description = forms.CharField(
        label=gettext_lazy("Description"), max_length=255, widget=UnfoldAdminTextInputWidget
    )


SetPermissionCode = task(
    Task,
    granted_permissions.SET_PERMISSION_CODE,
    button_label=gettext_lazy("Add or change a code"),
    form=CodeForm,
)


class PermissionCodeAdmin(RecordAdmin):
    list_display = ("code", "description")
    ordering = ("code",)
    record_template = "staff/registry/permission_code.html"
    tasks: ClassVar = (SetPermissionCode,)

    def buttons(self, request: HttpRequest, record: PermissionCode, at: datetime) -> list[Button]:
        given = {"code": record.code, "description": record.description}
        return self.related_buttons(request, (PermissionCode, "set_permission_code"), **given)


def code_choices() -> Iterable[tuple[str, str]]:
    """Every code with its description."""
    return [
        (row.code, f"{row.code} — {row.description}" if row.description else row.code)
        for row in PermissionCode.objects.order_by("code")
    ]


class GrantPermissionForm(TaskForm):
    taxpayer = fields.TaxpayerField(
        label=gettext_lazy("Represented taxpayer"),
        help_text=gettext_lazy("Who grants the permission: TIN, TIN:ROB, or any part of the name."),
    )
    intermediary = fields.IntermediaryField(
        help_text=gettext_lazy(
            "Who may act for the taxpayer: TIN, TIN:ROB, or any part of the name."
        )
    )
    codes = fields.CheckboxesField(label=gettext_lazy("Permission codes"), choices=code_choices)
    valid_from = fields.FirstDayField(
        label=gettext_lazy("First day"),
        required=False,
        help_text=gettext_lazy("Leave empty to start now."),
    )
    valid_until = fields.LastDayField(
        label=gettext_lazy("Last day"),
        required=False,
        help_text=gettext_lazy("Leave empty for no end date. It can be revoked at any time."),
    )
    evidence = fields.EvidenceField()


class GrantPermission(Task):
    operation = granted_permissions.GRANT_PERMISSION
    button_label = gettext_lazy("Grant permission")
    variant = "primary"
    form = GrantPermissionForm


class RevokePermissionForm(TaskForm):
    evidence = fields.EvidenceField()


class RevokePermission(Task):
    operation = granted_permissions.REVOKE_PERMISSION
    form = RevokePermissionForm
    button_label = gettext_lazy("Revoke")
    template = "staff/registry/refused_logins.html"

    def preview(self, record: GrantedPermission, data: dict[str, Any], at: datetime) -> Preview:
        codes = ", ".join(granted_permissions.codes_of(record))
        return Preview(format_html("{} {}", badge_of_permission(record, at).html, codes), REVOKED)
