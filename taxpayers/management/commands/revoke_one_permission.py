"""`revoke_one_permission ID`; `revoke_permission` revokes all that one taxpayer granted another."""

from taxpayers.management.operation_command import PAPER_FORM, PermissionCommand
from taxpayers.services.granted_permissions import REVOKE_PERMISSION


class Command(PermissionCommand):
    operation = REVOKE_PERMISSION
    fields = {"evidence": PAPER_FORM}
    done = "The permission {row} is revoked.\n{effect}"
