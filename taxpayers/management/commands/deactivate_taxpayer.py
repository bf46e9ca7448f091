"""`deactivate_taxpayer TIN [--rob ROB]` (contract 6)."""

from taxpayers.management.operation_command import TaxpayerCommand
from taxpayers.services.taxpayers import DEACTIVATE_TAXPAYER


class Command(TaxpayerCommand):
    operation = DEACTIVATE_TAXPAYER
    done = "{row.identifier} ({row.name}) is not active.\n{effect}"
