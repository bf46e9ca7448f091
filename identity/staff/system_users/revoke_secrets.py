"""The task that revokes every secret of system users: after a leak at the maker of their ERP."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.forms import ReasonForm
from identity.staff.framework.record_pages import Text
from identity.staff.framework.tasks import Preview, Task
from identity.staff.templatetags.staff import moment_text
from taxpayers.models import RateLimitCounter, SystemUser
from taxpayers.services import Author, revoke_secret


class RevokeEverySecret(Task):
    name = "revoke_every_secret"
    action = "revoke_secret"
    title = gettext_lazy("Revoke every secret")
    button_label = gettext_lazy("Revoke every secret")
    icon = "key_off"
    variant = "danger"
    form = ReasonForm

    def unavailable_reason(self, record: SystemUser, at: datetime) -> Text:
        if any(secret.is_live(at) for secret in record.secrets.all()):
            return ""
        return _("It has no valid secret.")

    def preview(self, record: SystemUser, data: dict[str, Any], at: datetime) -> Preview:
        live = [str(secret) for secret in record.secrets.all() if secret.is_live(at)]
        return Preview(
            _("Valid: {secrets}").format(secrets=", ".join(live)) if live else "",
            _("No valid secret: it cannot log in before another one is issued."),
            note=last_login_text(record),
            refusal=self.unavailable_reason(record, at),
        )

    @transaction.atomic
    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        for secret in record.secrets.filter(slot__isnull=False).order_by("pk"):
            revoke_secret(secret=secret, reason=data["reason"], by=by, at=at)
        return record


def last_login_text(record: SystemUser) -> str:
    """When it last got a token, in words: shows whether somebody will notice the change."""
    usage: RateLimitCounter | None = getattr(record, "usage", None)
    if usage is None or usage.last_used_at is None:
        return _("It has never logged in.")
    return _("Last login: {moment}.").format(moment=moment_text(usage.last_used_at))
