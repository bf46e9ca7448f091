"""Tasks of a system user: its name, scopes, limits, what its tokens are bound to, and its block."""

from collections.abc import Mapping
from copy import copy
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget

from identity.staff.framework import badges, fields
from identity.staff.framework.edit_conflicts import EditConflictForm, EditTask
from identity.staff.framework.lists import Context
from identity.staff.framework.tasks import Data, Preview, Task, TaskForm, task
from identity.staff.registry.granted_permissions import in_force
from identity.staff.registry.permission_codes import code_choices
from identity.staff.system_users.issue_credentials import ListField, OnlyOnBehalfField
from identity.staff.system_users.revoke_secrets import last_login_text
from identity.staff.system_users.secret_tasks import RevokeSecret
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import GrantedPermission, SystemUser
from taxpayers.services import system_users
from taxpayers.services.acting_limits import LIMIT_SYSTEM_USER
from taxpayers.services.login_method.change import BIND_TOKENS


class ChangeForm(EditConflictForm):
    watched: ClassVar = {
        name: name for name in ("name", "scopes", "logins_per_minute", "return_addresses")
    }

    name = fields.NameField()
    scopes = fields.CheckboxesField(label=gettext_lazy("Scopes"), choices=fields.scope_choices)
    logins_per_minute = fields.LimitField()
    return_addresses = forms.CharField(
        label=gettext_lazy("Return addresses"),
        required=False,
        help_text=gettext_lazy(
            "Where its requests for permissions may lead the browser back to, one a line."
        ),
        widget=UnfoldAdminTextareaWidget(attrs=fields.CODE | {"rows": 2}),
    )

    def clean_return_addresses(self) -> list[str]:
        return sorted(set(self.cleaned_data["return_addresses"].split()))


ChangeSystemUser = task(
    EditTask, system_users.CHANGE_SYSTEM_USER, gives_access=True, form=ChangeForm
)


class LimitForm(EditConflictForm):
    watched: ClassVar = {
        "only_on_behalf": "only_on_behalf",
        "permissions": "allowed_permissions",
        "taxpayers": "allowed_taxpayers",
    }

    only_on_behalf = OnlyOnBehalfField()
    permissions = fields.CheckboxesField(
        label=gettext_lazy("Permissions on behalf of others"),
        choices=code_choices,
        required=False,
        help_text=gettext_lazy(
            "It gets these at most, and only what the taxpayer has granted. Select none to allow"
            " all that is granted."
        ),
    )
    taxpayers = ListField(
        label=gettext_lazy("Taxpayers that it may act for"),
        help_text=gettext_lazy(
            "TIN or TIN:ROB, one in each line. Leave empty to allow every taxpayer that has granted"
            " a permission."
        ),
    )

    def clean_taxpayers(self) -> list[str]:
        """As they are stored. Who is not registered is found by the service."""
        entered = self.cleaned_data["taxpayers"]
        return sorted({str(fields.parsed_identifier(text)) for text in entered})

    @classmethod
    def values_for_service(cls, row: Model, data: Mapping[str, Any]) -> Data:
        values = super().values_for_service(row, data)
        taxpayers = [fields.parsed_identifier(text) for text in values["taxpayers"]]
        return values | {"taxpayers": taxpayers}


class LimitSystemUser(EditTask):
    operation = LIMIT_SYSTEM_USER
    gives_access = True
    form = LimitForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> Data:
        lines = "\n".join(record.allowed_taxpayers.split())
        return super().initial(request, record, at) | {"taxpayers": lines}


class BindingForm(EditConflictForm):
    watched: ClassVar = {"token_binding": "token_binding"}

    token_binding = fields.SelectField(
        label=gettext_lazy("Tokens bound to"),
        choices=SystemUser._meta.get_field("token_binding").choices or (),
        required=False,  # the empty value is one of the choices
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


class BlockSystemUser(Task):
    operation = system_users.BLOCK_SYSTEM_USER
    template = "staff/system_users/block_system_user.html"

    def form_context(self, request: HttpRequest, form: TaskForm, at: datetime) -> Context:
        """For how many taxpayers it acts, if its taxpayer is an intermediary."""
        valid = GrantedPermission.objects.filter(in_force(at))
        represented = valid.filter(intermediary__taxpayer=form.record.taxpayer_id)
        return {"represented": represented.values("taxpayer").distinct().count()}

    def preview(self, record: SystemUser, data: dict[str, Any], at: datetime) -> Preview:
        now = badges.badge_of_system_user(record, at).html
        return Preview(now, badges.BLOCKED, note=last_login_text(record))


class UnblockSystemUser(Task):
    operation = system_users.UNBLOCK_SYSTEM_USER
    gives_access = True
    template = "staff/system_users/unblock_system_user.html"

    def form_context(self, request: HttpRequest, form: TaskForm, at: datetime) -> Context:
        """Why it was blocked, and what will work again."""
        record, unblocked, revoke = form.record, copy(form.record), RevokeSecret(self.admin)
        unblocked.blocked_at = None  # something else may refuse its logins
        # Valid when it was blocked, and still: a leaked one may be among them.
        before = record.credentials.filter(created_at__lte=record.blocked_at).order_by("-pk")
        return {
            "why_blocked": badges.sentence_of_block(record),
            "secrets": [
                {
                    "row": secret,
                    "state": badges.badge_of_credential(secret, at),
                    "buttons": [revoke.button_of(secret)] if revoke.is_allowed(request) else [],
                }
                for secret in before
                if secret.is_live(at)
            ],
            "after": badges.badge_of_system_user(unblocked, at),
        }
