"""`activate_intermediary TIN [--rob ROB]`."""

from taxpayers.management.operation_command import IntermediaryCommand
from taxpayers.services.intermediaries import ACTIVATE_INTERMEDIARY


class Command(IntermediaryCommand):
    operation = ACTIVATE_INTERMEDIARY
    done = "{row.taxpayer.identifier} ({row.taxpayer.name}) is an active intermediary."
