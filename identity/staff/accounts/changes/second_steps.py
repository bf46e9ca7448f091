"""The second steps of a staff account: which there are, and how they are reset."""

from datetime import datetime

from allauth.mfa.models import Authenticator
from django.db import transaction

from identity.staff.accounts.changes.authority import lock_account
from identity.staff.accounts.changes.sessions import end_sessions
from identity.staff.models import StaffAccount
from taxpayers.services import Action, Author
from taxpayers.services.history import ChangeContext, record_change
from taxpayers.validation import validate_reason

_NAMES = {
    Authenticator.Type.TOTP: "authenticator app",
    Authenticator.Type.WEBAUTHN: "passkey",
    Authenticator.Type.RECOVERY_CODES: "recovery codes",
}


@transaction.atomic
def reset_second_factor(
    *, account: StaffAccount, reason: str, by: Author, at: datetime
) -> list[str]:
    """Remove every second step, so that the next sign-in sets up another; the removed ones."""
    context = ChangeContext(Action.RESET_SECOND_FACTOR, by, at, validate_reason(reason))
    row = lock_account(account, by)
    found = Authenticator.objects.filter(user_id=row.pk)
    names = sorted(
        _NAMES[Authenticator.Type(kind)] for kind in found.values_list("type", flat=True)
    )
    if not names:
        return []
    found.delete()
    # Whoever has the lost phone or key could have a session too, and set up a second step in it.
    end_sessions(row, at)
    record_change(row, context, before={"second_step": names}, after={"second_step": []})
    return names
