"""`end_permission_earlier ID --until DATE`."""

from taxpayers.management.operation_command import (
    EARLIER,
    PAPER_FORM,
    ChangedEnd,
    PermissionCommand,
)
from taxpayers.services.ends import END_PERMISSION_EARLIER


class Command(ChangedEnd, PermissionCommand):
    operation = END_PERMISSION_EARLIER
    fields = {"until": EARLIER, "evidence": PAPER_FORM}
    done = "The permission {row} is valid {until}."
