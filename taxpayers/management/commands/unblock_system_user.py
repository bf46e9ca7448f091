"""`unblock_system_user CLIENT_ID --reason TEXT` (contract 6)."""

from taxpayers.management.operation_command import SystemUserCommand
from taxpayers.services.system_users import UNBLOCK_SYSTEM_USER


class Command(SystemUserCommand):
    operation = UNBLOCK_SYSTEM_USER
    done = "{row.client_id} ({row.name}) is not blocked: it may log in."
