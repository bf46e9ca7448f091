"""`decline_permission_request ID [--paper-form NUMBER]`."""

from taxpayers.management.operation_command import PAPER_FORM, PermissionRequestCommand
from taxpayers.services.permission_requests import DECLINE_PERMISSION_REQUEST


class Command(PermissionRequestCommand):
    operation = DECLINE_PERMISSION_REQUEST
    fields = {"evidence": PAPER_FORM}
    done = "The request {row} is declined.\n{effect}"
