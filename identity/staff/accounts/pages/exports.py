"""The columns of the export of staff accounts, for a review of who has access."""

from datetime import datetime

from allauth.mfa.models import Authenticator

from identity.staff.framework.export import Export, field
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers import actions


def _second_step(row: StaffAccount) -> str:
    kinds = {factor.type for factor in row.authenticator_set.all()}
    return " ".join(sorted(kinds - {Authenticator.Type.RECOVERY_CODES}))


def _first_password_until(row: StaffAccount) -> datetime | None:
    """None: its owner has chosen a password."""
    first: FirstPassword | None = getattr(row, "first_password", None)
    return first.expires_at if first else None


STAFF_ACCOUNTS = Export(
    actions.EXPORT_REGISTRY,
    (
        ("user_name", lambda row: row.username),
        field("name"),
        field("role"),
        ("active", lambda row: row.is_active and row.is_staff),
        ("second_step", _second_step),
        ("first_password_until", _first_password_until),
        ("last_sign_in", lambda row: row.last_login),
        ("created", lambda row: row.date_joined),
    ),
)
