"""Protected APIs: the list, the page of one with its secrets, and the tasks (contract 2)."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Unpack

from django.conf import settings
from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.display import moment
from identity.staff.framework import badges, fields
from identity.staff.framework.lists import Context, column
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.secret_once import (
    HandOverFact,
    IssueOnceTask,
    ReplacingSecretForm,
    SecretOnceTask,
)
from identity.staff.framework.tasks import Call, Data, Task, TaskForm, tasks_by_reason
from taxpayers.moments import moment_text
from tokens.models import ProtectedApi, ProtectedApiSecret
from tokens.protected_apis import registration
from tokens.protected_apis.registration import introspection_endpoint


def _audiences() -> Iterable[tuple[str, str]]:
    names = sorted({scope["audience"] for scope in settings.SCOPES.values()})
    return [(name, name) for name in names]


class RegisterApiForm(TaskForm):
    name = fields.NameField(label=gettext_lazy("Name of the API"))
    audience = fields.SelectField(
        label=gettext_lazy("Audience"),
        choices=_audiences,
        help_text=gettext_lazy("Only tokens for this audience are active for the API."),
    )
    secret_expires = fields.LifetimeField(label=gettext_lazy("Last day of the secret"))


class RevokeApiSecretForm(TaskForm):
    secret = fields.SelectField(label=gettext_lazy("Secret"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        at = timezone.now()
        self.valid = registration.live_secrets(self.record, at)  # the oldest first
        lately = at - badges.CHANGED_OVER_AFTER
        self.in_use = [one for one in self.valid if one.last_used_at and one.last_used_at > lately]
        choices = [(str(secret.pk), _label(secret)) for secret in self.valid]
        self.fields["secret"].choices = choices  # type: ignore[attr-defined]  # it has some


def _label(secret: ProtectedApiSecret) -> str:
    text = _("{secret}, issued {issued}, valid until {end}")
    issued, end = moment_text(secret.created_at), moment_text(secret.expires_at)
    return text.format(secret=secret, issued=issued, end=end)


class _ApiSecretTask(SecretOnceTask):
    secret_template = "staff/protected_apis/new_secret.html"
    leads_to = "protected_api"
    example_title = gettext_lazy("A working request")

    def hand_over_facts(self, result: registration.IssuedApiSecret) -> list[HandOverFact]:
        credentials = result.credentials
        return [
            HandOverFact(_("Protected API"), result.protected_api.name),
            HandOverFact(_("Audience"), result.protected_api.audience),
            HandOverFact(_("Environment"), settings.ENVIRONMENT),
            HandOverFact(_("Ask at"), introspection_endpoint()),
            HandOverFact(_("Client ID"), credentials.client_id, "client-id"),
            HandOverFact(_("Client secret"), credentials.client_secret, "client-secret"),
            HandOverFact(_("Secret valid until"), moment_text(result.secret.expires_at)),
        ]

    def example(self, result: registration.IssuedApiSecret) -> str:
        owner = result.credentials
        return (
            f"curl {introspection_endpoint()} -u {owner.client_id}:{owner.client_secret}"
            " -d token=TOKEN"
        )


class RegisterProtectedApi(_ApiSecretTask):
    # Submitted twice, the second is refused: each API has another name.
    operation = registration.REGISTER_PROTECTED_API
    variant = "primary"
    form = RegisterApiForm


class RotateApiSecret(_ApiSecretTask, IssueOnceTask):
    operation = registration.ROTATE_API_SECRET
    form = ReplacingSecretForm


class RevokeApiSecret(Task):
    operation = registration.REVOKE_API_SECRET
    form = RevokeApiSecretForm
    template = "staff/protected_apis/revoke_secret.html"
    leads_to = "protected_api"

    def perform(self, record: ProtectedApi, data: Data, **call: Unpack[Call]) -> Any:
        secret = record.credentials.get(pk=data["secret"])
        return super().perform(secret, {"reason": data["reason"]}, **call)


def badge_of_api(row: ProtectedApi, at: datetime) -> badges.Badge:
    """What the API would be answered now, and until when; load it with its secrets."""
    if not row.is_active:
        return badges.Badge(badges.NOT_ACTIVE, "bad", _("Everything that it asks is refused."))
    live = [secret for secret in row.credentials.all() if secret.is_live(at)]
    if not live:
        text = _("It has no valid secret. Issue a new one.")
        return badges.Badge(badges.NO_VALID_SECRET, "bad", text)
    last = max(live, key=lambda secret: secret.expires_at)
    badge = badges.until_badge(badges.ACTIVE, last.expires_at, at)
    if not badge.also:
        return badge
    text = _("Its last valid secret, …{secret}, expires {moment}. Issue a new one before.")
    sentence = format_html(text, secret=last.hint, moment=moment(last.expires_at))
    return replace(badge, sentence=sentence)


class ProtectedApiAdmin(RecordAdmin):
    list_display = (
        *("name", "client_id", "audience"),
        "state",
        column("registered", gettext_lazy("registered"), lambda row: moment(row.created_at)),
    )
    list_filter = (("is_active", admin.BooleanFieldListFilter),)
    prefetched = ("credentials",)
    ordering = ("name",)
    search_help_text = gettext_lazy("Name or client ID")
    record_template = "staff/protected_apis/protected_api.html"
    badge = staticmethod(badge_of_api)
    tasks: ClassVar = (
        RegisterProtectedApi,
        RotateApiSecret,
        RevokeApiSecret,
        *tasks_by_reason(vars(registration)),
    )

    def search_conditions(self, term: str) -> Iterable[Q]:
        # No index: there are as many as the authority has APIs.
        return [Q(name__icontains=term) | Q(client_id__startswith=term)]

    def record_context(self, request: HttpRequest, record: ProtectedApi, at: datetime) -> Context:
        secrets = sorted(record.credentials.all(), key=lambda secret: -secret.pk)
        return {"secrets": [(secret, badges.badge_of_credential(secret, at)) for secret in secrets]}
