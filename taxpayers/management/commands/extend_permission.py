"""`extend_permission ID --until DATE`."""

from taxpayers.management.operation_command import LATER, ChangedEnd, PermissionCommand
from taxpayers.services.ends import EXTEND_PERMISSION


class Command(ChangedEnd, PermissionCommand):
    operation = EXTEND_PERMISSION
    fields = {"until": LATER}
    done = "The permission {row} is valid {until}."
