"""Tasks that limit credentials: what a system user may do for others, from where a secret works."""

from datetime import datetime
from typing import Any, ClassVar

from django.db import transaction
from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.edit_conflicts import EditConflictForm
from identity.staff.framework.forms import ReasonField, parsed_identifier
from identity.staff.framework.tasks import Task
from identity.staff.registry.limit_fields import (
    AllowedPermissionsField,
    AllowedTaxpayersField,
    NetworksField,
)
from identity.staff.system_users.secret_forms import SecretForm
from identity.staff.system_users.secret_tasks import SecretTask
from taxpayers.models import Credential, SystemUser
from taxpayers.services import Author, change_credential, limit_system_user
from taxpayers.services.limits.acting import LIMIT_SYSTEM_USER
from taxpayers.services.limits.source_networks import CHANGE_SECRET


class LimitForm(EditConflictForm):
    watched: ClassVar = {"permissions": "allowed_permissions", "taxpayers": "allowed_taxpayers"}

    permissions = AllowedPermissionsField()
    taxpayers = AllowedTaxpayersField()
    reason = ReasonField()


class LimitSystemUser(Task):
    operation = LIMIT_SYSTEM_USER
    gives_access = True
    icon = "filter_alt"
    form = LimitForm

    def initial(self, request: HttpRequest, record: SystemUser, at: datetime) -> dict[str, Any]:
        return {
            "permissions": record.allowed_permissions.split(),
            "taxpayers": "\n".join(record.allowed_taxpayers.split()),
        }

    @transaction.atomic
    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> SystemUser:
        values = LimitForm.values_for_service(record, data)
        values["taxpayers"] = [parsed_identifier(text) for text in values["taxpayers"]]
        return limit_system_user(system_user=record, by=by, at=at, **values)

    def success_message(self, result: SystemUser) -> str:
        if not result.is_limited:
            return _("{name} is not limited.").format(name=result)
        return _("{name} is limited.").format(name=result)


class ChangeSecretForm(SecretForm):
    networks = NetworksField()
    field_order = ("secret", "networks", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.chosen is not None:
            self.initial["networks"] = "\n".join(self.chosen.allowed_networks.split())


class ChangeSecret(SecretTask):
    operation = CHANGE_SECRET
    title = gettext_lazy("Set the networks from which it may be used")
    gives_access = True
    button_label = gettext_lazy("Set networks")
    icon = "lan"
    form = ChangeSecretForm
    template = "staff/system_users/change_secret.html"

    def perform(
        self, record: SystemUser, data: dict[str, Any], *, by: Author, at: datetime
    ) -> Credential:
        return change_credential(
            credential=record.credentials.get(pk=data["secret"]),
            allowed_networks=data["networks"],
            reason=data["reason"],
            by=by,
            at=at,
        )

    def success_message(self, result: Credential) -> str:
        if not result.allowed_networks:
            return _("{secret} may be used from anywhere.").format(secret=capfirst(result.label))
        networks = ", ".join(result.allowed_networks.split())
        return _("{secret} may be used from {networks} only.").format(
            secret=capfirst(result.label), networks=networks
        )
