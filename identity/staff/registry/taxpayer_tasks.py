"""Tasks for a taxpayer: register, rename, activate and deactivate (contract 4)."""

from collections.abc import Sequence
from typing import Unpack

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.framework.edit_conflicts import EditTask, RenameForm
from identity.staff.framework.forms import CODE, NameField, TaskForm, parsed_identifier
from identity.staff.framework.tasks import Call, Data, OperationTask, Task, task
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Taxpayer
from taxpayers.services import register_taxpayer
from taxpayers.services.taxpayers import (
    DEACTIVATE_TAXPAYER,
    REGISTER_TAXPAYER,
    RENAME_TAXPAYER,
)
from taxpayers.similar_names import similar_taxpayers


class RegisterTaxpayerForm(TaskForm):
    identifier = forms.CharField(
        label=gettext_lazy("TIN"),
        help_text=gettext_lazy("TIN, or TIN:ROB for a taxpayer with a ROB number."),
        widget=UnfoldAdminTextInputWidget(attrs=CODE),
    )
    name = NameField()
    # What was asked about: to submit it again registers it.
    shown_for = forms.CharField(required=False, widget=forms.HiddenInput, strip=False)
    similar: Sequence[Taxpayer] = ()

    def clean_identifier(self) -> TaxpayerId:
        return parsed_identifier(self.cleaned_data["identifier"])

    def clean(self) -> None:
        name = self.cleaned_data.get("name")
        if not name or self.errors:
            return
        identifier = self.cleaned_data["identifier"]
        asked = f"{identifier} {name}"
        if asked == self.cleaned_data.get("shown_for"):
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
    operation = REGISTER_TAXPAYER
    button_label = gettext_lazy("Register taxpayer")
    variant = "primary"
    form = RegisterTaxpayerForm
    template = "staff/registry/register_taxpayer.html"
    is_for_record = False

    def perform(self, record: None, data: Data, **call: Unpack[Call]) -> Taxpayer:
        return register_taxpayer(taxpayer=data["identifier"], name=data["name"], **call)


RenameTaxpayer = task(EditTask, RENAME_TAXPAYER, form=RenameForm)
DeactivateTaxpayer = task(
    OperationTask, DEACTIVATE_TAXPAYER, template="staff/registry/deactivate_taxpayer.html"
)
