"""A new secret is shown on one page, once (contract 3): it is not stored and not shown again.

The page is the response to the form itself. The secret is never in a message, a session or a URL.
A reload submits the form again; the form carries the id of the newest secret at the time when it
was opened, so it issues one secret only.
"""

from typing import Any

from django import forms
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.forms import TaskForm
from identity.staff.framework.tasks import Task
from identity.staff.templatetags.staff import moment_text
from taxpayers.models import SystemUser
from taxpayers.secret_once import secret_data
from taxpayers.services import IssuedSecret, ServiceError


class SecretOnceTask(Task):
    """A task whose result is a new secret."""

    secret_template = "staff/framework/secret_once.html"

    def success_response(self, request: HttpRequest, result: IssuedSecret) -> HttpResponse:
        at = result.secret.created_at
        breadcrumb = gettext_lazy("New secret")
        context = self.admin.page_context(request, result.system_user, at, breadcrumb=breadcrumb)
        context |= {"issued": result, "credentials": secret_data(result)}
        response = TemplateResponse(request, self.secret_template, context)
        response["Cache-Control"] = "no-store"
        response["Pragma"] = "no-cache"
        response["Referrer-Policy"] = "no-referrer"
        return response


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
            " be shown again. If nobody saved it, go back, revoke it and issue another one."
        ).format(secret=secret, moment=moment_text(secret.created_at))
    )
