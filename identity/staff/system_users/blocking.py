"""Tasks: block a system user at once, and unblock it (contract 4)."""

from copy import copy
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from identity.staff.framework.badges import (
    BLOCKED,
    Badge,
    badge_of_credential,
    badge_of_system_user,
    sentence_of_block,
)
from identity.staff.framework.forms import TaskForm
from identity.staff.framework.tasks import OperationTask, Preview
from identity.staff.registry.granted_permissions import in_force
from identity.staff.system_users.revoke_secrets import last_login_text
from identity.staff.system_users.secret_tasks import RevokeSecret
from taxpayers.models import Credential, GrantedPermission, SystemUser
from taxpayers.services.system_users import BLOCK_SYSTEM_USER, UNBLOCK_SYSTEM_USER


class BlockSystemUser(OperationTask):
    operation = BLOCK_SYSTEM_USER
    template = "staff/system_users/block_system_user.html"

    def form_context(
        self, request: HttpRequest, record: SystemUser, form: TaskForm, at: datetime
    ) -> dict[str, Any]:
        """For how many taxpayers it acts, if its taxpayer is an intermediary."""
        valid = GrantedPermission.objects.filter(in_force(at))
        represented = valid.filter(intermediary__taxpayer=record.taxpayer_id)
        return {"represented": represented.values("taxpayer").distinct().count()}

    def preview(self, record: SystemUser, data: dict[str, Any], at: datetime) -> Preview:
        return Preview(
            badge_of_system_user(record, at).html,
            BLOCKED,
            note=last_login_text(record),
            refusal=self.unavailable_reason(record, at),
        )


class UnblockSystemUser(OperationTask):
    operation = UNBLOCK_SYSTEM_USER
    gives_access = True
    template = "staff/system_users/unblock_system_user.html"

    def form_context(
        self, request: HttpRequest, record: SystemUser, form: TaskForm, at: datetime
    ) -> dict[str, Any]:
        """Why it was blocked, and what will work again."""
        revoke = RevokeSecret(self.admin)
        return {
            "why_blocked": sentence_of_block(record),
            "secrets": [
                {
                    "row": secret,
                    "state": badge_of_credential(secret, at),
                    "buttons": [revoke.button_of(secret)] if revoke.is_allowed(request) else [],
                }
                for secret in valid_since_before_the_block(record, at)
            ],
            "after": badge_after_unblocking(record, at),
        }


def valid_since_before_the_block(record: SystemUser, at: datetime) -> list[Credential]:
    """The secrets that were valid when it was blocked and still are: a leaked one may be there."""
    assert record.blocked_at is not None  # noqa: S101 - the task is for blocked ones
    secrets = record.credentials.filter(created_at__lte=record.blocked_at).order_by("-pk")
    return [secret for secret in secrets if secret.is_live(at)]


def badge_after_unblocking(record: SystemUser, at: datetime) -> Badge:
    """Its state without the block: something else may refuse its logins."""
    unblocked = copy(record)
    unblocked.blocked_at = None
    return badge_of_system_user(unblocked, at)
