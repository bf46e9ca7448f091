"""The second steps of a staff account: how they are reset, and what their owner changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Unpack

from allauth.mfa.models import Authenticator
from django.db import transaction

from identity.staff import actions
from identity.staff.accounts.changes.authority import end_sessions, lock_account
from identity.staff.accounts.changes.second_person import close_until_confirmed
from identity.staff.models import StaffAccount
from taxpayers.actions import marked
from taxpayers.operations import ByReason
from taxpayers.services.history import (
    Asked,
    Author,
    ChangeContext,
    context_of,
    lock_for_update,
    makes,
    record_change,
)

_NAMES = {
    Authenticator.Type.TOTP: "authenticator app",
    Authenticator.Type.WEBAUTHN: "passkey",
    Authenticator.Type.RECOVERY_CODES: "recovery codes",
}
MAX_NAME_LENGTH = 100  # of a passkey, in the history


RESET_SECOND_FACTOR = ByReason(
    actions.RESET_SECOND_FACTOR,
    marked("Reset the second step"),
    marked(
        "For a colleague who lost their phone or security key and has no recovery codes. Make sure"
        " that it is really them: call them, or meet them. All their second steps are removed, and"
        " they are signed out. At the next sign-in they set up a new one with their password."
    ),
    unneeded=lambda row: (
        "" if row.authenticator_set.exists() else marked("It has no second step yet.")
    ),
)


@makes(RESET_SECOND_FACTOR, "account")
def reset_second_factor(*, account: StaffAccount, **asked: Unpack[Asked]) -> list[str]:
    """Remove every second step, so that the next sign-in sets up another; the removed ones.

    An account with a duty is closed before a second person confirms.
    """
    context = context_of(RESET_SECOND_FACTOR, **asked)
    row = lock_account(account, context.by)
    found = Authenticator.objects.filter(user_id=row.pk)
    names = sorted(
        _NAMES[Authenticator.Type(kind)] for kind in found.values_list("type", flat=True)
    )
    if not names:
        return []
    found.delete()
    # Who has the lost phone or key could have a session too, and set up a second step in it.
    end_sessions(row, context.at)
    after = {"second_step": []} | close_until_confirmed(row, context)
    record_change(row, context, before={"second_step": names}, after=after)
    return names


@contextmanager
def recorded_own_second_steps(*, account: StaffAccount, by: Author, at: datetime) -> Iterator[None]:
    """Records how the owner changes the second steps inside: together with the change, or not."""
    with transaction.atomic():
        lock_for_update(account)
        before = _second_steps(account)
        yield
        after = _second_steps(account)
        changed = [name for name in before if before[name] != after[name]]
        if changed:
            record_change(
                account,
                ChangeContext(actions.CHANGE_OWN_SECOND_STEP, by, at),
                before={name: before[name] for name in changed},
                after={name: after[name] for name in changed},
            )


def _second_steps(account: StaffAccount) -> dict[str, Any]:
    """As the history stores them: passkeys by the names that their owner gave them."""
    steps: list[str] = []
    codes_created_at = None
    for row in Authenticator.objects.filter(user_id=account.pk):
        if row.type == Authenticator.Type.RECOVERY_CODES:
            codes_created_at = row.created_at
        else:
            name = str(row.data.get("name", ""))[:MAX_NAME_LENGTH]
            steps.append(f"{_NAMES[Authenticator.Type(row.type)]} {name}".strip())
    return {"second_step": sorted(steps), "recovery_codes_created_at": codes_created_at}
