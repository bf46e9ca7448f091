"""Tasks that change a system user: name, scopes and limits, and what its tokens are bound to."""

from datetime import datetime
from typing import Any, ClassVar, Unpack

from django import forms
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from identity.staff.framework.edit_conflicts import EditConflictForm, EditTask
from identity.staff.framework.forms import (
    CODE,
    CheckboxesField,
    LimitField,
    NameField,
    ReasonField,
    parsed_identifier,
    scope_choices,
)
from identity.staff.framework.tasks import Call, Data, Task
from identity.staff.registry.issue_credentials import AllowedPermissionsField, AllowedTaxpayersField
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import SystemUser
from taxpayers.services import bind_tokens
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
    reason = ReasonField()


class ChangeSystemUser(EditTask):
    operation = CHANGE_SYSTEM_USER
    gives_access = True
    icon = "edit"
    form = ChangeForm
    done = gettext_lazy("{name} is changed.")

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> Data:
        return super().initial(request, record, at) | {"scopes": record.scopes.split()}


class LimitForm(EditConflictForm):
    watched: ClassVar = {"permissions": "allowed_permissions", "taxpayers": "allowed_taxpayers"}

    permissions = AllowedPermissionsField()
    taxpayers = AllowedTaxpayersField()
    reason = ReasonField()


class LimitSystemUser(Task):
    operation = LIMIT_SYSTEM_USER
    gives_access = True
    icon = "filter_alt"
    form = LimitForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> Data:
        return {
            "permissions": record.allowed_permissions.split(),
            "taxpayers": "\n".join(record.allowed_taxpayers.split()),
        }

    @transaction.atomic
    def perform(self, record: SystemUser, data: Data, **call: Unpack[Call]) -> SystemUser:
        values = LimitForm.values_for_service(record, data)
        values["taxpayers"] = [parsed_identifier(text) for text in values["taxpayers"]]
        limited: SystemUser = super().perform(record, values, **call)
        return limited

    def success_message(self, result: SystemUser) -> str:
        if not result.is_limited:
            return _("{name} is not limited.").format(name=result)
        return _("{name} is limited.").format(name=result)


class BindingForm(EditConflictForm):
    watched: ClassVar = {"token_binding": "token_binding"}

    token_binding = forms.ChoiceField(
        label=gettext_lazy("Tokens bound to"),
        choices=SystemUser._meta.get_field("token_binding").choices or (),
        required=False,  # the empty value is one of the choices
        widget=UnfoldAdminSelectWidget,
    )
    reason = ReasonField()


class BindTokens(EditTask):
    """To its key or certificate (RFC 9449, RFC 8705)."""

    operation = BIND_TOKENS
    gives_access = True
    button_label = gettext_lazy("Bind its tokens")
    icon = "link"
    form = BindingForm

    @transaction.atomic
    def perform(self, record: SystemUser, data: Data, **call: Unpack[Call]) -> SystemUser:
        values = BindingForm.values_for_service(record, data)
        binding = values.get("token_binding")
        binding = TokenBinding(record.token_binding if binding is None else binding)
        return bind_tokens(system_user=record, binding=binding, reason=data["reason"], **call)

    def success_message(self, result: SystemUser) -> str:
        return _("Tokens of {name} are bound to: {binding}.").format(
            name=result, binding=result.tokens_bound_to
        )
