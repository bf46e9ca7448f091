"""`set_permission_code CODE --description TEXT`: what taxpayers can grant."""

from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.operation_command import OperationCommand
from taxpayers.models import PermissionCode
from taxpayers.services.granted_permissions import SET_PERMISSION_CODE


class Command(OperationCommand):
    operation = SET_PERMISSION_CODE
    fields = {
        "code": {"flag": "", "metavar": "CODE", "help": "for example documents:submit"},
        "description": {"required": True, "help": "what it permits, for staff"},
    }
    takes_reason = False
    done = "{row.code}: {row.description}"

    def add_record(self, parser: CommandParser) -> None:
        """It may be new."""

    def data(self, row: PermissionCode) -> dict[str, Any]:
        return {"code": row.code, "description": row.description}
