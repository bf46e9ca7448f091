"""`deactivate_intermediary TIN [--rob ROB]`."""

from taxpayers.management.operation_command import IntermediaryCommand
from taxpayers.services.intermediaries import DEACTIVATE_INTERMEDIARY


class Command(IntermediaryCommand):
    operation = DEACTIVATE_INTERMEDIARY
    done = "{row.taxpayer.identifier} ({row.taxpayer.name}) is no longer active.\n{effect}"
