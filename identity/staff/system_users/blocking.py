"""Tasks: block a system user at once, and unblock it (contract 4)."""

from copy import copy
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.badges import (
    BLOCKED,
    Badge,
    badge_of_secret,
    badge_of_system_user,
    sentence_of_block,
)
from identity.staff.framework.forms import ReasonForm, TaskForm
from identity.staff.framework.record_pages import Text
from identity.staff.framework.tasks import Preview, Task
from identity.staff.system_users.revoke_secrets import last_login_text
from identity.staff.system_users.secret_tasks import (
    RevokeSecret,
    possible_buttons,
    successor_buttons,
)
from taxpayers.models import ClientSecret, SystemUser
from taxpayers.services import Author, block_system_user, unblock_system_user


class BlockSystemUser(Task):
    name = "block_system_user"
    title = gettext_lazy("Block the system user")
    button_label = gettext_lazy("Block")
    description = gettext_lazy(
        "From now on, every login of this system user is refused. Tokens that were already issued:"
        " APIs that check them with this service refuse them within 10 seconds, others accept them"
        " for up to one hour. It can be unblocked at any time."
    )
    icon = "block"
    variant = "danger"
    form = ReasonForm
    template = "staff/system_users/block_system_user.html"

    def unavailable_reason(self, record: SystemUser, at: datetime) -> Text:
        return "" if record.blocked_at is None else _("It is already blocked.")

    def preview(self, record: SystemUser, data: dict[str, Any], at: datetime) -> Preview:
        return Preview(
            badge_of_system_user(record, at).html,
            BLOCKED,
            note=last_login_text(record),
            refusal=self.unavailable_reason(record, at),
        )

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        return block_system_user(system_user=record, reason=data["reason"], by=by, at=at)

    def success_message(self, result: SystemUser) -> str:
        return _("{name} is blocked.").format(name=result)


class UnblockSystemUser(Task):
    name = "unblock_system_user"
    gives_access = True
    title = gettext_lazy("Unblock the system user")
    button_label = gettext_lazy("Unblock")
    description = gettext_lazy("It can log in again at once, with what is valid.")
    icon = "lock_open"
    variant = "success"
    form = ReasonForm
    template = "staff/system_users/unblock_system_user.html"

    def unavailable_reason(self, record: SystemUser, at: datetime) -> Text:
        return "" if record.blocked_at is not None else _("It is not blocked.")

    def form_context(
        self, request: HttpRequest, record: SystemUser, form: TaskForm, at: datetime
    ) -> dict[str, Any]:
        """Why it was blocked, and what will work again."""
        return {
            "why_blocked": sentence_of_block(record),
            "secrets": [
                {
                    "row": secret,
                    "state": badge_of_secret(secret, at),
                    "buttons": possible_buttons(request, RevokeSecret(self.admin), secret, at),
                }
                for secret in valid_since_before_the_block(record, at)
            ],
            "successors": successor_buttons(request, self.admin, record, at),
            "after": badge_after_unblocking(record, at),
        }

    def preview(self, record: SystemUser, data: dict[str, Any], at: datetime) -> Preview:
        if refusal := self.refusal(record, at):
            return Preview(badge_of_system_user(record, at).html, refusal=refusal)
        live = [secret.label for secret in record.secrets.all() if secret.is_live(at)]
        text = _("Works again: {listed}.").format(listed=", ".join(live))
        return Preview(
            sentence_of_block(record),
            badge_after_unblocking(record, at).html,
            note=text if live else "",
        )

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        return unblock_system_user(system_user=record, reason=data["reason"], by=by, at=at)

    def success_message(self, result: SystemUser) -> str:
        return _("{name} is unblocked.").format(name=result)


def valid_since_before_the_block(record: SystemUser, at: datetime) -> list[ClientSecret]:
    """The secrets that were valid when it was blocked and still are: a leaked one may be there."""
    assert record.blocked_at is not None  # noqa: S101 - the task is for blocked ones
    secrets = record.secrets.filter(created_at__lte=record.blocked_at).order_by("-pk")
    return [secret for secret in secrets if secret.is_live(at)]


def badge_after_unblocking(record: SystemUser, at: datetime) -> Badge:
    """Its state without the block: something else may refuse its logins."""
    unblocked = copy(record)
    unblocked.blocked_at = None
    return badge_of_system_user(unblocked, at)
