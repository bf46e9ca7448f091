"""Tasks that change a system user: name, scopes and limits, and what its tokens are bound to."""

from datetime import datetime
from typing import Any, ClassVar, Unpack

from django import forms
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from identity.staff.framework.edit_conflicts import EditConflictForm, EditTask
from identity.staff.framework.forms import (
    CODE,
    CheckboxesField,
    LimitField,
    NameField,
    parsed_identifier,
    scope_choices,
)
from identity.staff.framework.tasks import Call, Data, Task, task
from identity.staff.registry.issue_credentials import ListField, OnlyOnBehalfField
from identity.staff.registry.permission_tasks import code_choices
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import SystemUser
from taxpayers.services.limits.acting import LIMIT_SYSTEM_USER
from taxpayers.services.login_method.binding import BIND_TOKENS
from taxpayers.services.system_users import CHANGE_SYSTEM_USER


class ReturnAddressesField(forms.CharField):
    """Addresses separated by blanks or new lines; a list."""

    widget = UnfoldAdminTextareaWidget(attrs=CODE | {"rows": 2})

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Return addresses"),
            required=False,
            help_text=gettext_lazy(
                "Where its requests for permissions may lead the browser back to, one a line."
            ),
        )

    def clean(self, value: Any) -> Any:
        return sorted(set(super().clean(value).split()))


class ChangeForm(EditConflictForm):
    watched: ClassVar = {
        "name": "name",
        "scopes": "scopes",
        "logins_per_minute": "logins_per_minute",
        "return_addresses": "return_addresses",
    }

    name = NameField()
    scopes = CheckboxesField(label=gettext_lazy("Scopes"), choices=scope_choices)
    logins_per_minute = LimitField()
    return_addresses = ReturnAddressesField()


class ChangeSystemUser(EditTask):
    operation = CHANGE_SYSTEM_USER
    gives_access = True
    form = ChangeForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> Data:
        return super().initial(request, record, at) | {"scopes": record.scopes.split()}


class AllowedPermissionsField(CheckboxesField):
    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Permissions on behalf of others"),
            choices=code_choices,
            required=False,
            help_text=gettext_lazy(
                "It gets these at most, and only what the taxpayer has granted. Select none to"
                " allow all that is granted."
            ),
        )


class AllowedTaxpayersField(ListField):
    """Identifiers, as they are stored. Who is not registered is found by the service."""

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Taxpayers that it may act for"),
            help_text=gettext_lazy(
                "TIN or TIN:ROB, one in each line. Leave empty to allow every taxpayer that has"
                " granted a permission."
            ),
        )

    def clean(self, value: Any) -> list[str]:
        return sorted({str(parsed_identifier(text)) for text in self.values(value)})


class LimitForm(EditConflictForm):
    watched: ClassVar = {
        "only_on_behalf": "only_on_behalf",
        "permissions": "allowed_permissions",
        "taxpayers": "allowed_taxpayers",
    }

    only_on_behalf = OnlyOnBehalfField()
    permissions = AllowedPermissionsField()
    taxpayers = AllowedTaxpayersField()


class LimitSystemUser(Task):
    operation = LIMIT_SYSTEM_USER
    gives_access = True
    form = LimitForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> Data:
        return {
            "only_on_behalf": record.only_on_behalf,
            "permissions": record.allowed_permissions.split(),
            "taxpayers": "\n".join(record.allowed_taxpayers.split()),
        }

    @transaction.atomic
    def perform(self, record: SystemUser, data: Data, **call: Unpack[Call]) -> SystemUser:
        values = LimitForm.values_for_service(record, data)
        values["taxpayers"] = [parsed_identifier(text) for text in values["taxpayers"]]
        limited: SystemUser = super().perform(record, values, **call)
        return limited


class BindingForm(EditConflictForm):
    watched: ClassVar = {"token_binding": "token_binding"}

    token_binding = forms.ChoiceField(
        label=gettext_lazy("Tokens bound to"),
        choices=SystemUser._meta.get_field("token_binding").choices or (),
        required=False,  # the empty value is one of the choices
        widget=UnfoldAdminSelectWidget,
    )

    def clean_token_binding(self) -> TokenBinding:
        return TokenBinding(self.cleaned_data["token_binding"])


BindTokens = task(
    EditTask,
    BIND_TOKENS,
    gives_access=True,
    button_label=gettext_lazy("Bind its tokens"),
    form=BindingForm,
)
