"""Taxpayers: the list, the page of one, and the tasks (contract 4)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _, gettext_lazy, ngettext_lazy

from identity.staff.display import moment, record_url
from identity.staff.framework import fields
from identity.staff.framework.badges import badge_of_intermediary, badge_of_taxpayer
from identity.staff.framework.edit_conflicts import EditTask, RenameForm
from identity.staff.framework.lists import Context, RecordNotFound, column
from identity.staff.framework.related import removal_of
from identity.staff.framework.tasks import Button, Task, TaskForm, task, tasks_by_reason
from identity.staff.imports.import_task import ImportTask
from identity.staff.registry.granted_permissions import listed_permissions
from identity.staff.registry.intermediaries import AutocompleteAdmin, own_system_users
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.services import taxpayers
from taxpayers.similar_names import similar_taxpayers


class RegisterTaxpayerForm(TaskForm):
    identifier = fields.CodeField(
        label=gettext_lazy("TIN"),
        help_text=gettext_lazy("TIN, or TIN:ROB for a taxpayer with a ROB number."),
    )
    name = fields.NameField()
    # What was asked about: to submit it again registers it.
    shown_for = forms.CharField(required=False, widget=forms.HiddenInput, strip=False)
    similar: Sequence[Taxpayer] = ()

    def clean_identifier(self) -> TaxpayerId:
        return fields.parsed_identifier(self.cleaned_data["identifier"])

    def clean(self) -> None:
        name = self.cleaned_data.get("name")
        if not name or self.errors:
            return
        identifier = self.cleaned_data["identifier"]
        asked = f"{identifier} {name}"
        if asked == self.cleaned_data.pop("shown_for"):
            return
        if identifier.tin.isalpha():
            text = _("Nothing was saved yet: {tin} has no digits. Press again if it is a TIN.")
            self.add_error(None, text.format(tin=identifier.tin))
        similar = similar_taxpayers(name)
        if similar and all(row.identifier != identifier for row in similar):
            self.similar = similar
            self.add_error(None, _("Nothing was saved yet: there are taxpayers with such a name."))
        if self.errors:
            self.data = {**dict(self.data.items()), "shown_for": asked}  # what it sends next


class RegisterTaxpayer(Task):
    operation = taxpayers.REGISTER_TAXPAYER
    button_label = gettext_lazy("Register taxpayer")
    variant = "primary"
    form = RegisterTaxpayerForm
    template = "staff/registry/register_taxpayer.html"


class ImportTaxpayers(ImportTask):
    kind_name = "taxpayers"
    column_notes = gettext_lazy("rob can be empty. active is yes or no; empty means yes.")
    example = (
        ("C2581234010", "Kedai Runcit Seri Wangsa Sdn Bhd", "", "yes"),
        ("C2581234080", "Lim & Daughters Hardware", "202301045678", "no"),
    )
    counted = ngettext_lazy("{count} taxpayer", "{count} taxpayers", "count")


RenameTaxpayer = task(EditTask, taxpayers.RENAME_TAXPAYER, form=RenameForm)
DeactivateTaxpayer = task(
    Task, taxpayers.DEACTIVATE_TAXPAYER, template="staff/registry/refused_logins.html"
)


class TaxpayerAdmin(AutocompleteAdmin):
    # What an import reads, and one that it ignores.
    exported = ("tin", "rob", "name", ("active", "is_active"), ("registered_at", "created_at"))
    list_display = (
        column("identifier", gettext_lazy("TIN"), lambda row: row.identifier),
        "name",
        "state",
        column("registered", gettext_lazy("registered"), lambda row: moment(row.created_at)),
    )
    linked_columns = 2
    list_filter = (("is_active", admin.BooleanFieldListFilter),)
    ordering = ("tin", "rob")
    paths_to_taxpayers = ("",)
    search_help_text = gettext_lazy("TIN, ROB number, or name")
    record_template = "staff/registry/taxpayer.html"
    badge = staticmethod(badge_of_taxpayer)
    tasks: ClassVar = (
        RegisterTaxpayer,
        ImportTaxpayers,
        RenameTaxpayer,
        *tasks_by_reason(vars(taxpayers), DeactivateTaxpayer),
    )

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Of one whose import was undone, the history is left: links of before lead there."""
        try:
            return super().change_view(request, object_id, *args, **kwargs)
        except RecordNotFound:
            if removal := removal_of(request, object_id):
                return HttpResponseRedirect(record_url(removal))
            raise

    def buttons(self, request: HttpRequest, record: Taxpayer, at: datetime) -> list[Button]:
        tasks = [(SystemUser, "issue_credentials"), (GrantedPermission, "grant_permission")]
        if not hasattr(record, "intermediary"):
            tasks.append((Intermediary, "register_intermediary"))
        related = self.related_buttons(request, *tasks, taxpayer=str(record.identifier))
        return [*related, *super().buttons(request, record, at)]

    def record_context(self, request: HttpRequest, record: Taxpayer, at: datetime) -> Context:
        role: Intermediary | None = getattr(record, "intermediary", None)
        return {
            "role": role,
            "role_state": badge_of_intermediary(role, at) if role else None,
            "system_users": own_system_users(record, at),
            "granted": listed_permissions(request, record.granted, at),
        }
