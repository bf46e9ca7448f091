"""`extend_intermediary TIN [--rob ROB] --until DATE`."""

from taxpayers.management.operation_command import LATER, ChangedEnd, IntermediaryCommand
from taxpayers.services.ends import EXTEND_INTERMEDIARY


class Command(ChangedEnd, IntermediaryCommand):
    operation = EXTEND_INTERMEDIARY
    fields = {"until": LATER}
    done = "{row.taxpayer.identifier} ({row.taxpayer.name}) is an intermediary {until}."
