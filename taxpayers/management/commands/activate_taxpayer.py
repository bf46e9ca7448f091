"""`activate_taxpayer TIN [--rob ROB]` (contract 6)."""

from taxpayers.management.operation_command import TaxpayerCommand
from taxpayers.services.taxpayers import ACTIVATE_TAXPAYER


class Command(TaxpayerCommand):
    operation = ACTIVATE_TAXPAYER
    done = "{row.identifier} ({row.name}) is active."
