"""The task that binds tokens of a system user to its key or certificate (RFC 9449, RFC 8705)."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from identity.staff.framework.edit_conflicts import EditConflictForm, EditTask
from identity.staff.framework.forms import ReasonField
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import SystemUser
from taxpayers.services import Author, bind_tokens
from taxpayers.services.login_method.binding import BIND_TOKENS


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
    operation = BIND_TOKENS
    gives_access = True
    button_label = gettext_lazy("Bind its tokens")
    icon = "link"
    form = BindingForm

    @transaction.atomic
    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        values = BindingForm.values_for_service(record, data)
        binding = values.get("token_binding")
        return bind_tokens(
            system_user=record,
            binding=TokenBinding(record.token_binding if binding is None else binding),
            reason=data["reason"],
            by=by,
            at=at,
        )

    def success_message(self, result: SystemUser) -> str:
        return _("Tokens of {name} are bound to: {binding}.").format(
            name=result,
            binding=result.tokens_bound_to,
        )
