"""`extend_permission ID --until DATE`."""

from taxpayers.management.operation_command import LATER, PAPER_FORM, ChangedEnd, PermissionCommand
from taxpayers.services.ends import EXTEND_PERMISSION


class Command(ChangedEnd, PermissionCommand):
    operation = EXTEND_PERMISSION
    fields = {"until": LATER, "evidence": PAPER_FORM}
    done = "The permission {row} is valid {until}."
