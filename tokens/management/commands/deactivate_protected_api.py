"""`deactivate_protected_api API` (contract 2)."""

from tokens.management.protected_api_command import ProtectedApiCommand
from tokens.protected_apis.registration import DEACTIVATE_PROTECTED_API


class Command(ProtectedApiCommand):
    operation = DEACTIVATE_PROTECTED_API
    done = "{row} is not active. Whatever it asks is refused."
