"""Tasks for the secrets of a system user: issue a new one, set the last day, revoke (contract 3).

The last two begin from the row of one secret and say what will fail before they ask. They are the
tasks for a key too, so their texts name neither.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Unpack

from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.badges import badge_of_credential
from identity.staff.framework.forms import TaskForm
from identity.staff.framework.lists import RecordPages
from identity.staff.framework.secret_once import IssueOnceTask
from identity.staff.framework.tasks import Button, Call, Data, Task
from identity.staff.system_users.login_methods import RegisterClientCertificate, RegisterClientKey
from identity.staff.system_users.secret_forms import (
    ChangeSecretForm,
    RetireSecretForm,
    RevokeSecretForm,
    RotateSecretForm,
    SecretForm,
    advice_on,
    is_in_use,
    others_of,
)
from taxpayers.models import Credential, SystemUser
from taxpayers.services.credential_changes import RETIRE_SECRET, REVOKE_SECRET, ROTATE_SECRET
from taxpayers.services.limits.source_networks import CHANGE_SECRET, networks_for_new


class RotateSecret(IssueOnceTask):
    operation = ROTATE_SECRET
    gives_access = True
    icon = "key"
    form = RotateSecretForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> Data:
        networks = "\n".join(networks_for_new(record, None).split())
        return super().initial(request, record, at) | {"networks": networks}


class SecretTask(Task):
    """A task for one of the valid secrets, which the address names: `?secret=ID`.

    Its title on the page is short: the secret stands beside it.
    """

    icon = "key_off"
    has_button = False  # the page of the system user has a link beside each secret
    form: ClassVar[type[SecretForm]]
    template = "staff/system_users/secret_task.html"
    choice_template = "staff/system_users/choose_secret.html"

    def button_of(self, secret: Credential) -> Button:
        button = self.button_for(secret.system_user)
        return replace(button, url=f"{button.url}?secret={secret.pk}")

    def form_template(self, form: TaskForm) -> str:
        """First the choice of one secret."""
        is_chosen = isinstance(form, SecretForm) and form.chosen
        return self.template if is_chosen else self.choice_template

    def form_context(
        self, request: HttpRequest, record: SystemUser, form: TaskForm, at: datetime
    ) -> dict[str, Any]:
        """What is known of the secret, or of each, and what remains without it."""
        assert isinstance(form, SecretForm)  # noqa: S101 - of every subclass
        secrets = form.secrets
        shown = [form.chosen] if form.chosen else form.valid
        return {
            "secrets": [
                {
                    "row": secret,
                    "state": badge_of_credential(secret, at),
                    "is_in_use": is_in_use(secret, secrets, at),
                    "advice": advice_on(secret, secrets, at),
                    "others": others_of(secret, secrets, at),
                    "url": self.button_of(secret).url,
                }
                for secret in shown
            ],
            "successors": successor_buttons(request, self.admin, record, at),
        }

    def perform(self, record: SystemUser, data: Data, **call: Unpack[Call]) -> Credential:
        credential = record.credentials.get(pk=data["secret"])
        given = {name: data[name] for name in data if name not in ("secret", "hint")}
        changed: Credential = super().perform(credential, given, **call)
        return changed

    def next_record(self, result: Credential) -> SystemUser:
        return result.system_user


class RevokeSecret(SecretTask):
    operation = REVOKE_SECRET
    title = button_label = gettext_lazy("Revoke")
    form = RevokeSecretForm

    def success_message(self, result: Credential) -> str:
        return _("{secret} is revoked.").format(secret=capfirst(result.label))


class RetireSecret(SecretTask):
    operation = RETIRE_SECRET
    title = button_label = gettext_lazy("Set last day")
    icon = "event_busy"
    form = RetireSecretForm

    def success_message(self, result: Credential) -> str:
        return _("The last day of {secret} is set.").format(secret=result.label)


class ChangeSecret(SecretTask):
    operation = CHANGE_SECRET
    title = gettext_lazy("Set the networks from which it may be used")
    gives_access = True
    button_label = gettext_lazy("Set networks")
    icon = "lan"
    form = ChangeSecretForm
    template = "staff/system_users/change_secret.html"

    def success_message(self, result: Credential) -> str:
        if not result.allowed_networks:
            return _("{secret} may be used from anywhere.").format(secret=capfirst(result.label))
        networks = ", ".join(result.allowed_networks.split())
        return _("{secret} may be used from {networks} only.").format(
            secret=capfirst(result.label), networks=networks
        )


def successor_buttons(
    request: HttpRequest, pages: RecordPages, record: SystemUser, at: datetime
) -> list[Button]:
    """What adds another secret, or another key, if this person may do it and it is possible."""
    tasks = (RotateSecret(pages), RegisterClientKey(pages), RegisterClientCertificate(pages))
    return [button for task in tasks for button in possible_buttons(request, task, record, at)]


def possible_buttons(
    request: HttpRequest, task: Task, record: SystemUser | Credential, at: datetime
) -> list[Button]:
    """The button of the task, if this person may do it and it is possible now."""
    owner = record.system_user if isinstance(record, Credential) else record
    if not task.is_allowed(request) or task.refusal(owner, at):
        return []
    if isinstance(task, SecretTask) and isinstance(record, Credential):
        return [task.button_of(record)]
    return [task.button_for(owner)]
