"""Tasks for the secrets of a system user: issue a new one, set the last day, revoke (contract 3).

The last two are the tasks for a key and a certificate too, so their texts name none of them.
"""

from datetime import datetime
from typing import Any, ClassVar, Unpack

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.framework import fields
from identity.staff.framework.lists import Context
from identity.staff.framework.secret_once import IssueOnceTask, ReplacingSecretForm
from identity.staff.framework.tasks import Button, Call, Data, Task, TaskForm, task
from identity.staff.system_users.issue_credentials import NetworksField
from identity.staff.system_users.revoke_secrets import is_in_use, others_of, shown_secret
from taxpayers.models import Credential, SystemUser
from taxpayers.services.credential_changes import RETIRE_SECRET, REVOKE_SECRET, ROTATE_SECRET
from taxpayers.services.live_credentials import CHANGE_SECRET, networks_for_new


class RotateSecretForm(ReplacingSecretForm):
    networks = NetworksField()
    field_order = ("expires", "retire_old", "networks", "reason")


class SecretForm(TaskForm):
    """One valid secret, chosen by the link that led here."""

    secret = forms.ChoiceField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.at = timezone.now()
        self.secrets: list[Credential] = list(self.record.credentials.order_by("-pk"))
        self.valid = [secret for secret in self.secrets if secret.is_live(self.at)]
        choices = [(str(secret.pk), str(secret)) for secret in self.valid]
        self.fields["secret"].choices = choices  # type: ignore[attr-defined]  # it has some
        if not self.is_bound and "secret" not in self.initial and len(self.valid) == 1:
            self.initial["secret"] = str(self.valid[0].pk)
        named = self.data.get("secret") if self.is_bound else self.initial.get("secret")
        self.chosen = next((one for one in self.valid if str(one.pk) == named), None)


class RevokeSecretForm(SecretForm):
    """Asks for the last characters of a secret that is in use: it may be the wrong one."""

    hint = fields.LastCharactersField(
        label=gettext_lazy("Last characters"),
        help_text=gettext_lazy(
            "An ERP system uses it. To confirm that it is the right one, enter its last characters"
            " as they are shown above."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.chosen is None or not is_in_use(self.chosen, self.secrets, self.at):
            del self.fields["hint"]
        else:
            self.fields["hint"].expected = self.chosen.hint  # type: ignore[attr-defined]  # it has one


class RetireSecretForm(SecretForm):
    last_day = fields.LastDayField(
        label=gettext_lazy("Last day"),
        help_text=gettext_lazy("Leave enough time to change the ERP system to another one."),
    )


class ChangeSecretForm(SecretForm):
    networks = NetworksField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.chosen is not None:
            self.initial["networks"] = "\n".join(self.chosen.allowed_networks.split())


class RotateSecret(IssueOnceTask):
    operation = ROTATE_SECRET
    gives_access = True
    form = RotateSecretForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> Data:
        networks = "\n".join(networks_for_new(record, None).split())
        return super().initial(request, record, at) | {"networks": networks}


class SecretTask(Task):
    """A task for one of the valid secrets, which the address names: `?secret=ID`."""

    has_button = False  # the page of the system user has a link beside each secret
    form: ClassVar[type[SecretForm]]
    template = "staff/system_users/secret_task.html"
    leads_to = "system_user"

    def button_of(self, secret: Credential) -> Button:
        return self.button_for(secret.system_user, secret=secret.pk)

    def form_page(self, request: HttpRequest, form: Any, at: datetime) -> HttpResponse:
        if form.chosen is not None:
            return super().form_page(request, form, at)
        messages.error(request, _("Nothing was changed: choose one that is valid."))
        return HttpResponseRedirect(f"{self.admin.record_url(form.record)}#secrets")

    def form_context(self, request: HttpRequest, form: Any, at: datetime) -> Context:
        """What is known of the secret, and what remains without it."""
        secret, secrets = form.chosen, form.secrets
        others = others_of(secret, secrets, at)
        return {"secrets": [shown_secret(secret, secrets, at) | {"others": others}]}

    def perform(self, record: SystemUser, data: Data, **call: Unpack[Call]) -> Any:
        credential = record.credentials.get(pk=data["secret"])
        given = {name: data[name] for name in data if name not in ("secret", "hint")}
        return super().perform(credential, given, **call)


RevokeSecret = task(SecretTask, REVOKE_SECRET, title=gettext_lazy("Revoke"), form=RevokeSecretForm)
RetireSecret = task(
    SecretTask,
    RETIRE_SECRET,
    title=gettext_lazy("Set last day"),
    form=RetireSecretForm,
)
ChangeSecret = task(
    SecretTask,
    CHANGE_SECRET,
    title=gettext_lazy("Set the networks from which it may be used"),
    gives_access=True,
    button_label=gettext_lazy("Set networks"),
    form=ChangeSecretForm,
    template="staff/system_users/change_secret.html",
)
