"""A new secret is shown on one page, once (contract 3): it is not stored and not shown again.

The page is a sheet that is handed over to the operator of the ERP system. It is the response to
the form itself: the secret is never in a message, a session or a URL. A reload submits the form
again; the form carries the id of the newest secret at the time when it was opened, so it issues
one secret only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.forms import TaskForm
from identity.staff.framework.tasks import Task
from identity.staff.templatetags.staff import moment_text
from taxpayers.models import SystemUser
from taxpayers.moments import format_moment
from taxpayers.secret_once import login_example, secret_data
from taxpayers.services import IssuedSecret, ServiceError


class SecretOnceTask(Task):
    """A task whose result is a new secret."""

    secret_template = "staff/framework/secret_once.html"

    def success_response(self, request: HttpRequest, result: IssuedSecret) -> HttpResponse:
        at = result.secret.created_at
        breadcrumb = gettext_lazy("New secret")
        context = self.admin.page_context(request, result.system_user, at, breadcrumb=breadcrumb)
        facts = hand_over_facts(result)
        example = login_example(result.credentials, secret_data(result)["token_endpoint"])
        context |= {
            "issued": result,
            "facts": facts,
            "example": example,
            "is_intermediary": hasattr(result.system_user.taxpayer, "intermediary"),
            "as_text": hand_over_text(facts, example),
        }
        response = TemplateResponse(request, self.secret_template, context)
        response["Cache-Control"] = "no-store"
        response["Pragma"] = "no-cache"
        response["Referrer-Policy"] = "no-referrer"
        return response


@dataclass(frozen=True, slots=True)
class HandOverFact:
    """One line of the sheet; `copy_id`: of its element, where it can be copied alone."""

    label: str
    value: str = field(repr=False)
    copy_id: str = ""
    is_secret: bool = False


def hand_over_facts(issued: IssuedSecret) -> list[HandOverFact]:
    """What the operator of the ERP system must know, in the language of the reader."""
    data, user = secret_data(issued), issued.system_user
    rob = user.taxpayer.rob
    present = user.secrets.filter(slot__isnull=False).exclude(pk=issued.secret.pk)
    return [
        HandOverFact(_("Taxpayer"), user.taxpayer.name),
        HandOverFact(_("TIN"), user.taxpayer.tin),
        *([HandOverFact(_("ROB number"), rob)] if rob else []),
        HandOverFact(_("System user"), user.name),
        HandOverFact(_("Environment"), data["environment"]),
        HandOverFact(_("Login address"), data["token_endpoint"]),
        HandOverFact(_("Client ID"), data["client_id"], "client-id"),
        HandOverFact(_("Client secret"), data["client_secret"], "client-secret", is_secret=True),
        HandOverFact(_("Secret valid until"), _moment_with_zone(data["secret_expires_at"])),
        *(
            HandOverFact(
                _("Former secret {secret} valid until").format(secret=secret),
                _moment_with_zone(secret.expires_at),
            )
            for secret in present
        ),
    ]


def _moment_with_zone(moment: datetime) -> str:
    return f"{format_moment(moment)} ({settings.TIME_ZONE})"


def hand_over_text(facts: Sequence[HandOverFact], example: str) -> str:
    """The whole sheet as plain text, for one copy."""
    lines = [f"{fact.label}: {fact.value}" for fact in facts if fact.value]
    return "\n".join([*lines, "", _("A working login:"), example])


class IssueOnceForm(TaskForm):
    """Issues one secret, even if it is submitted several times."""

    newest = forms.IntegerField(widget=forms.HiddenInput)


def newest_secret_id(system_user: SystemUser) -> int:
    """The id of its newest secret; 0 if it has none."""
    keys = system_user.secrets.order_by("-pk").values_list("pk", flat=True)
    return keys.first() or 0


def check_form_not_reused(system_user: SystemUser, data: dict[str, Any]) -> None:
    """Raises ServiceError if a secret was issued since the form was opened.

    Only inside a transaction: the system user stays lock_for_update until its end.
    """
    assert transaction.get_connection().in_atomic_block  # noqa: S101 - see above
    SystemUser.objects.select_for_update().get(pk=system_user.pk)
    if newest_secret_id(system_user) == data["newest"]:
        return
    secret = system_user.secrets.latest("pk")
    raise ServiceError(
        _(
            "This form was already submitted. The secret {secret} was issued {moment} and cannot"
            " be shown again. If nobody saved it, go back, revoke it and issue a new one."
        ).format(secret=secret, moment=moment_text(secret.created_at))
    )
