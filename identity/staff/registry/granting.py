"""Granting and revoking permissions, and the codes that can be granted (contract 4)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.framework.forms import (
    CheckboxesField,
    FirstDayField,
    IntermediaryField,
    LastDayField,
    ReasonForm,
    TaskForm,
    TaxpayerField,
)
from identity.staff.framework.record_pages import Text
from identity.staff.framework.tasks import Task
from taxpayers.models import GrantedPermission, PermissionCode
from taxpayers.services import Author, grant_permission, revoke_permission, set_permission_code


def code_choices() -> Iterable[tuple[str, str]]:
    """Every code, with what it permits."""
    return [
        (row.code, f"{row.code} — {row.description}" if row.description else row.code)
        for row in PermissionCode.objects.order_by("code")
    ]


class GrantPermissionForm(TaskForm):
    taxpayer = TaxpayerField(
        label=gettext_lazy("Represented taxpayer"),
        help_text=gettext_lazy("Who permits it: TIN, TIN:ROB, or the beginning of the name."),
    )
    intermediary = IntermediaryField(
        help_text=gettext_lazy("Who may act for it: TIN, TIN:ROB, or the beginning of the name.")
    )
    codes = CheckboxesField(label=gettext_lazy("What is permitted"), choices=code_choices)
    valid_from = FirstDayField(
        label=gettext_lazy("First day"),
        required=False,
        help_text=gettext_lazy("Without a day it begins now."),
    )
    valid_until = LastDayField(
        label=gettext_lazy("Last day"),
        required=False,
        help_text=gettext_lazy("Without a day it has no end; it can be revoked."),
    )


class GrantPermission(Task):
    name = "grant_permission"
    title = gettext_lazy("Grant a permission")
    button = gettext_lazy("Grant permission")
    says = gettext_lazy("The intermediary may log in on behalf of the taxpayer.")
    icon = "verified_user"
    variant = "primary"
    form = GrantPermissionForm
    is_for_record = False

    def perform(
        self, record: None, data: dict[str, Any], *, by: Author, at: datetime
    ) -> GrantedPermission:
        return grant_permission(by=by, at=at, **data)

    def done(self, result: GrantedPermission) -> str:
        return _("The permission {permission} is granted.").format(permission=result)


class RevokePermission(Task):
    name = "revoke_permission"
    title = gettext_lazy("Revoke the permission")
    button = gettext_lazy("Revoke")
    says = gettext_lazy(
        "It ends now and for good. Tokens that were issued under it stay valid for an hour at most."
    )
    icon = "remove_moderator"
    variant = "danger"
    form = ReasonForm
    template = "staff/registry/revoke_permission.html"

    def refusal(self, record: GrantedPermission, at: datetime) -> Text:
        return "" if record.revoked_at is None else _("It is revoked already.")

    def perform(
        self, record: GrantedPermission, data: dict[str, Any], *, by: Author, at: datetime
    ) -> GrantedPermission:
        return revoke_permission(permission=record, reason=data["reason"], by=by, at=at)

    def done(self, result: GrantedPermission) -> str:
        return _("The permission {permission} is revoked.").format(permission=result)


class CodeForm(TaskForm):
    code = forms.CharField(
        label=gettext_lazy("Code"),
        help_text=gettext_lazy("Words of a-z, 0-9 and _ with colons between: documents:submit."),
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    description = forms.CharField(
        label=gettext_lazy("What it permits"), max_length=255, widget=UnfoldAdminTextInputWidget
    )


class SetPermissionCode(Task):
    name = "set_permission_code"
    title = gettext_lazy("Set a permission code")
    button = gettext_lazy("Add or describe a code")
    says = gettext_lazy("A code that exists is described anew.")
    icon = "new_label"
    form = CodeForm
    is_for_record = False

    def perform(
        self, record: None, data: dict[str, Any], *, by: Author, at: datetime
    ) -> PermissionCode:
        return set_permission_code(by=by, at=at, **data)

    def done(self, result: PermissionCode) -> str:
        return _("The code {code} is set.").format(code=result)
