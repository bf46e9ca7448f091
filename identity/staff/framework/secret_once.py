"""A new secret is shown on one page, once (contract 3): nothing keeps it, nothing shows it again.

The page is the answer to the form itself. It is never stored, not in a message, a session or an
address; a reload sends the form again, and the form says which secret was the newest when it was
filled in, so that it makes a secret once only.
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
from identity.staff.templatetags.staff import format_moment
from taxpayers.models import SystemUser
from taxpayers.secret_once import secret_data
from taxpayers.services import IssuedSecret, ServiceError


class SecretOnceTask(Task):
    """A task whose result is a secret."""

    handover_template = "staff/framework/secret_once.html"

    def answer(self, request: HttpRequest, result: IssuedSecret) -> HttpResponse:
        at = result.secret.created_at
        crumb = gettext_lazy("New secret")
        context = self.admin.page_context(request, result.system_user, at, crumb=crumb)
        context |= {"issued": result, "handover": secret_data(result)}
        response = TemplateResponse(request, self.handover_template, context)
        response["Cache-Control"] = "no-store"
        response["Pragma"] = "no-cache"
        response["Referrer-Policy"] = "no-referrer"
        return response


class OnceForm(TaskForm):
    """Makes one secret, however often it is sent."""

    newest = forms.IntegerField(widget=forms.HiddenInput)


def newest_secret(system_user: SystemUser) -> int:
    """The key of its newest secret; 0 if it has none."""
    keys = system_user.secrets.order_by("-pk").values_list("pk", flat=True)
    return keys.first() or 0


def check_once(system_user: SystemUser, data: dict[str, Any]) -> None:
    """Raises ServiceError if a secret was issued since the form was filled in.

    Only inside a transaction: the system user stays locked until its end.
    """
    assert transaction.get_connection().in_atomic_block  # noqa: S101 - see above
    SystemUser.objects.select_for_update().get(pk=system_user.pk)
    if newest_secret(system_user) == data["newest"]:
        return
    secret = system_user.secrets.latest("pk")
    raise ServiceError(
        _(
            "This form has been used: the secret {secret} was issued {moment}. It is not shown"
            " again. If it was not written down, go back, revoke it and issue another one."
        ).format(secret=secret, moment=format_moment(secret.created_at))
    )
