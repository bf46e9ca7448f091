"""A further secret for a system user, shown once (contract 3)."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.forms import LastDayField
from identity.staff.framework.record_pages import Text
from identity.staff.framework.secret_once import OnceForm, SecretOnceTask, check_once, newest_secret
from identity.staff.templatetags.staff import format_moment
from taxpayers.models import MAX_LIVE_SECRETS, SystemUser
from taxpayers.services import Author, IssuedSecret, issue_secret


class RotateSecretForm(OnceForm):
    expires = LastDayField(
        label=gettext_lazy("Last day of the new secret"),
        required=False,
        help_text=gettext_lazy("Without a day: as long as the service is set to, usually a year."),
    )
    retire_old = LastDayField(
        label=gettext_lazy("Last day of the old secret"),
        required=False,
        help_text=gettext_lazy(
            "Leave time to put the new one in place. Without a day the old one keeps its own end."
        ),
    )


class RotateSecret(SecretOnceTask):
    name = "rotate_secret"
    title = gettext_lazy("Issue another secret")
    button = gettext_lazy("Issue secret")
    says = gettext_lazy(
        "A second secret is issued and shown once. The present one goes on working, so that the"
        " ERP system can change over without a pause."
    )
    icon = "key"
    form = RotateSecretForm

    def refusal(self, record: SystemUser, at: datetime) -> Text:
        live = [secret for secret in record.secrets.order_by("pk") if secret.is_live(at)]
        if len(live) < MAX_LIVE_SECRETS:
            return ""
        # Whoever reloads the page of a new secret reads this: it must say that it was issued.
        return _(
            "There are two secrets already, {secret} was issued {moment}. Revoke the one that is"
            " no longer in use first."
        ).format(secret=live[-1], moment=format_moment(live[-1].created_at))

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> dict[str, Any]:
        return {"newest": newest_secret(record)}

    @transaction.atomic
    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> IssuedSecret:
        check_once(record, data)
        return issue_secret(
            system_user=record,
            expires_at=data["expires"],
            retire_old_at=data["retire_old"],
            by=by,
            at=at,
        )
