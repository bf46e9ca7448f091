"""The columns of the export of system users; names and values are for programs, not translated.

They are those of the management API where it has them. New ones come last: some programs count.
"""

from functools import partial
from typing import Any

from django.utils import timezone

from identity.staff.framework.export import Column
from taxpayers.models import SystemUser
from taxpayers.models.credential import SLOTS
from taxpayers.standing.loaded_rows import credentials_of, standing_of_row

ACTIVE, NO_VALID_CREDENTIAL = "active", "no_valid_credential"


def state_of(row: SystemUser) -> str:
    """What its next login gets: `active`, or the reason of each thing that refuses it."""
    standing = standing_of_row(row, timezone.now())
    missing = [] if standing.valid_credentials else [NO_VALID_CREDENTIAL]
    return " ".join([*missing, *(refused.reason for refused in standing.refusals)]) or ACTIVE


def _credential_columns(number: int) -> tuple[Column, ...]:
    """Of one secret, key or certificate, the oldest first; empty if it has fewer."""

    def value(row: SystemUser, name: str) -> Any:
        credentials = credentials_of(row)[number - 1 : number]
        return next((getattr(one, name) if name else one for one in credentials), None)

    names = ("", "kind", "name", "expires_at", "last_used_at", "allowed_networks")
    return tuple(
        (f"credential_{number}_{name}".rstrip("_"), partial(value, name=name)) for name in names
    )


SYSTEM_USERS: tuple[Column, ...] = (
    *("client_id", "name"),
    *(("taxpayer", "taxpayer.identifier"), ("taxpayer_name", "taxpayer.name")),
    *("scopes", "logins_per_minute", "expires_at"),
    *("blocked_at", "blocked_by", "blocked_reason"),
    *(("registered_at", "created"), ("state", state_of), "last_used_at", "login_method"),
    ("token_binding", lambda row: row.required_binding.value or "none"),
    *("allowed_permissions", "allowed_taxpayers"),
    *(column for number in SLOTS for column in _credential_columns(number)),
    "only_on_behalf",
)
