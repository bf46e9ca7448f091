"""`revoke_one_permission ID`; `revoke_permission` revokes all that one taxpayer granted another."""

from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.find_records import find_permission
from taxpayers.management.operation_command import OperationCommand
from taxpayers.models import GrantedPermission
from taxpayers.services.granted_permissions import REVOKE_PERMISSION


class Command(OperationCommand):
    operation = REVOKE_PERMISSION
    done = "The permission {row} is revoked.\n{effect}"

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("permission", metavar="ID", type=int, help="the number of its page")

    def find(self, options: dict[str, Any]) -> GrantedPermission:
        return find_permission(options["permission"])

    def data(self, row: GrantedPermission) -> dict[str, Any]:
        return {"id": row.pk, "revoked_at": row.revoked_at}
