"""Tasks: block a system user at once, and unblock it (contract 4)."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.forms import ReasonForm
from identity.staff.framework.record_pages import Text
from identity.staff.framework.tasks import Task
from taxpayers.models import SystemUser
from taxpayers.services import Author, block_system_user, unblock_system_user


class BlockSystemUser(Task):
    name = "block_system_user"
    title = gettext_lazy("Block the system user")
    button_label = gettext_lazy("Block")
    description = gettext_lazy(
        "From now on, every login of this system user is refused. Tokens that it already has stay"
        " valid for up to one hour. It can be unblocked at any time."
    )
    icon = "block"
    variant = "danger"
    form = ReasonForm
    template = "staff/registry/block_system_user.html"

    def unavailable_reason(self, record: SystemUser, at: datetime) -> Text:
        return "" if record.blocked_at is None else _("It is already blocked.")

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        return block_system_user(system_user=record, reason=data["reason"], by=by, at=at)

    def success_message(self, result: SystemUser) -> str:
        return _("{name} is blocked.").format(name=result)


class UnblockSystemUser(Task):
    name = "unblock_system_user"
    title = gettext_lazy("Unblock the system user")
    button_label = gettext_lazy("Unblock")
    description = gettext_lazy("It can log in again at once, with its current secrets.")
    icon = "lock_open"
    variant = "success"
    form = ReasonForm

    def unavailable_reason(self, record: SystemUser, at: datetime) -> Text:
        return "" if record.blocked_at is not None else _("It is not blocked.")

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        return unblock_system_user(system_user=record, reason=data["reason"], by=by, at=at)

    def success_message(self, result: SystemUser) -> str:
        return _("{name} is unblocked.").format(name=result)
