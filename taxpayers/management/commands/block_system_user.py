"""`block_system_user CLIENT_ID --reason TEXT` (contract 6)."""

from taxpayers.management.operation_command import SystemUserCommand
from taxpayers.models import SystemUser
from taxpayers.moments import format_moment
from taxpayers.services.system_users import BLOCK_SYSTEM_USER


class Command(SystemUserCommand):
    operation = BLOCK_SYSTEM_USER

    def text(self, row: SystemUser) -> str:
        since = format_moment(row.blocked_at) if row.blocked_at else ""
        return (
            f"{row.client_id} ({row.name}) has been blocked since {since} by {row.blocked_by}:"
            f" {row.blocked_reason}\n{self.operation.effect}"
        )
