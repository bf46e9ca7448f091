"""A new secret is shown on one page, once (contract 3): it is not stored and not shown again.

The page is the response to the form itself: the secret is never in a message, a session or a URL,
and page_protection.py lets no cache store a page. A reload submits the form again; the form carries
the id of the newest secret of the time when it was opened, so it issues one secret only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Unpack

from django import forms
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.framework import fields
from identity.staff.framework.lists import Text
from identity.staff.framework.tasks import Call, Data, Task, TaskForm
from taxpayers.moments import moment_text
from taxpayers.secret_once import login_example, secret_data
from taxpayers.services import ServiceError


@dataclass(frozen=True, slots=True)
class HandOverFact:
    """One line of the sheet that the owner of the secret gets."""

    label: str
    value: str = field(repr=False)
    copy_id: str = ""  # of its element, if it can be copied; `client-secret` is then emptied


class SecretOnceTask(Task):
    """A task whose result is a new secret: by default one of a system user."""

    secret_template = "staff/framework/secret_once.html"
    leads_to = "system_user"
    example_title: ClassVar[Text] = gettext_lazy("A working login")

    def hand_over_facts(self, result: Any) -> list[HandOverFact]:
        """What its owner must know, in the language of the reader; those without a value go."""
        data, user = secret_data(result), result.system_user
        present = user.credentials.filter(slot__isnull=False).exclude(pk=result.secret.pk)
        former = _("Former secret {secret} valid until")
        return [
            HandOverFact(_("Taxpayer"), user.taxpayer.name),
            HandOverFact(_("TIN"), user.taxpayer.tin),
            HandOverFact(_("ROB number"), user.taxpayer.rob),
            HandOverFact(_("System user"), user.name),
            HandOverFact(_("Environment"), data["environment"]),
            HandOverFact(_("Login address"), data["token_endpoint"]),
            HandOverFact(_("Client ID"), data["client_id"], "client-id"),
            HandOverFact(_("Client secret"), data["client_secret"], "client-secret"),
            HandOverFact(_("Secret valid until"), moment_text(data["secret_expires_at"])),
            HandOverFact(_("Log in from"), ", ".join(data["allowed_networks"])),
            *(
                HandOverFact(former.format(secret=secret), moment_text(secret.expires_at))
                for secret in present
            ),
        ]

    def example(self, result: Any) -> str:
        """How the credentials are used, in one line, ready to paste; the secret in clear."""
        return login_example(result.credentials, secret_data(result)["token_endpoint"])

    def success_response(self, request: HttpRequest, result: Any) -> HttpResponse:
        owner, at = self.next_record(result), result.secret.created_at
        breadcrumb = gettext_lazy("New secret")
        context = self.admin.page_context(request, owner, at, breadcrumb=breadcrumb)
        facts = [fact for fact in self.hand_over_facts(result) if fact.value]
        lines, example = [f"{fact.label}: {fact.value}" for fact in facts], self.example(result)
        context |= {
            "task": self,
            "facts": facts,
            "example": example,
            "as_text": "\n".join([*lines, "", f"{self.example_title}:", example]),
        }
        return TemplateResponse(request, self.secret_template, context)


class IssueOnceForm(TaskForm):
    """Issues one secret, even if it is submitted several times."""

    newest = forms.IntegerField(widget=forms.HiddenInput)


class NewSecretForm(IssueOnceForm):
    expires = fields.LifetimeField(label=gettext_lazy("Last day of the new secret"))
    reason = fields.CredentialReasonField()


class ReplacingSecretForm(NewSecretForm):
    retire_old = fields.LastDayField(
        label=gettext_lazy("Last day of the old secret"),
        required=False,
        help_text=gettext_lazy(
            "Leave enough time to change to the new secret. Leave empty to keep the expiry date of"
            " the old secret."
        ),
    )
    field_order: Sequence[str] | None = ("expires", "retire_old", "reason")


class IssueOnceTask(SecretOnceTask):
    """Issues another secret to an owner that may have some."""

    form: ClassVar[type[IssueOnceForm]]

    def newest(self, owner: Any) -> int:
        """The id of the newest one that was issued; 0 if there is none."""
        keys = owner.credentials.order_by("-pk").values_list("pk", flat=True)
        return keys.first() or 0

    def initial(self, request: HttpRequest, record: Any, at: datetime) -> Data:
        return {"newest": self.newest(record)}

    @transaction.atomic
    def perform(self, record: Any, data: Data, **call: Unpack[Call]) -> Any:
        self.lock(record, call["by"])
        if self.newest(record) != data["newest"]:
            raise ServiceError(
                "This form was already submitted, and what it issued cannot be shown again. If"
                " it was not saved, go back and issue another one."
            )
        return super().perform(record, {n: data[n] for n in data if n != "newest"}, **call)
