"""`approve_permission_request ID [--permission CODE…] [--until DATE] [--paper-form NUMBER]`."""

from taxpayers.management.operation_command import EARLIER, PAPER_FORM, PermissionRequestCommand
from taxpayers.services.permission_requests import APPROVE_PERMISSION_REQUEST


class Command(PermissionRequestCommand):
    operation = APPROVE_PERMISSION_REQUEST
    fields = {
        "codes": {
            "flag": "--permission",
            "metavar": "CODE",
            "nargs": "+",
            "action": "extend",
            "default": [],
            "help": "some of those asked for; omitted: all",
        },
        "until": {**EARLIER, "required": False, "help": "an earlier last day than asked for"},
        "evidence": PAPER_FORM,
    }
    done = "The request {row} is approved.\n{effect}"
