"""`activate_taxpayer TIN [--rob ROB]` (contract 6)."""

from typing import Any

from taxpayers.management.taxpayer_command import TaxpayerCommand
from taxpayers.models import Taxpayer
from taxpayers.services import set_taxpayer_active


class Command(TaxpayerCommand):
    help = (
        "Activate a taxpayer: its system users and its intermediaries can log in for it again."
        " Safe to repeat."
    )
    text = "{row.identifier} ({row.name}) is active."

    def change(self, options: dict[str, Any], **who: Any) -> Taxpayer:
        return set_taxpayer_active(is_active=True, **who)
