"""`retire_secret CLIENT_ID SECRET_HINT --until DATE`."""

from typing import Any

from taxpayers.management.operation_command import EARLIER, CredentialCommand
from taxpayers.models import Credential
from taxpayers.moments import format_moment
from taxpayers.services.credential_changes import RETIRE_SECRET


class Command(CredentialCommand):
    operation = RETIRE_SECRET
    fields = {"last_moment": EARLIER}

    def data(self, row: Any) -> dict[str, Any]:
        client_id = row.system_user.client_id
        hint, end = row.hint, row.expires_at
        return {"client_id": client_id, "secret_hint": hint, "secret_expires_at": end}

    def text(self, row: Credential) -> str:
        return f"{row} of {row.system_user.client_id} works until {format_moment(row.expires_at)}."
