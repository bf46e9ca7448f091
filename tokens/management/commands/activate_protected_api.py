"""`activate_protected_api API` (contract 2)."""

from tokens.management.protected_api_command import ProtectedApiCommand
from tokens.protected_apis.registration import ACTIVATE_PROTECTED_API


class Command(ProtectedApiCommand):
    operation = ACTIVATE_PROTECTED_API
    done = "{row} is active. It may ask again whether a token is active."
