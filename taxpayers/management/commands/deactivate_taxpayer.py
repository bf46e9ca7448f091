"""`deactivate_taxpayer TIN [--rob ROB]` (contract 6)."""

from typing import Any

from taxpayers.management.taxpayer_command import TaxpayerCommand
from taxpayers.models import Taxpayer
from taxpayers.services import set_taxpayer_active


class Command(TaxpayerCommand):
    help = (
        "Deactivate a taxpayer: from now on nobody logs in for it, neither its own system users nor"
        " an intermediary, and its system users cannot log in for others. Safe to repeat."
    )
    text = (
        "{row.identifier} ({row.name}) is not active: nobody can log in for it.\n"
        "APIs that introspect refuse its tokens at once, others accept them for one hour at most."
    )

    def change(self, options: dict[str, Any], **who: Any) -> Taxpayer:
        return set_taxpayer_active(is_active=False, **who)
