"""`end_intermediary_earlier TIN [--rob ROB] --until DATE`."""

from taxpayers.management.operation_command import EARLIER, ChangedEnd, IntermediaryCommand
from taxpayers.services.ends import END_INTERMEDIARY_EARLIER


class Command(ChangedEnd, IntermediaryCommand):
    operation = END_INTERMEDIARY_EARLIER
    fields = {"until": EARLIER}
    done = "{row.taxpayer.identifier} ({row.taxpayer.name}) is an intermediary {until}."
