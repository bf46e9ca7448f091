"""What a person signs in with: the first password, their own one, second steps; and sessions."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Unpack

from allauth.mfa.models import Authenticator
from django.db import transaction
from django.utils.translation import gettext as _

from identity.staff import actions
from identity.staff.accounts.changes import authority
from identity.staff.accounts.changes.second_person import LIFETIME, close_until_confirmed
from identity.staff.accounts.sign_ins import open_sessions
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.actions import marked
from taxpayers.operations import ByReason, Operation
from taxpayers.services import Author, history

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that looks or sounds like another one
_GROUPS, _GROUP_LENGTH = 4, 4  # 79 bits


@dataclass(frozen=True, slots=True)
class IssuedPassword:
    """A new first password in clear, to be shown once."""

    account: StaffAccount
    password: str = field(repr=False)
    expires_at: datetime


SET_FIRST_PASSWORD = Operation(
    actions.SET_FIRST_PASSWORD,
    "Set a new first password",
    "For a colleague who forgot their password. Make sure that it is really them: call them, or"
    " meet them. The old password stops working, and they are signed out. The new first"
    " password is shown once; they replace it at the next sign-in. Their second step stays.",
)


@history.makes(SET_FIRST_PASSWORD, "account")
def set_first_password(*, account: StaffAccount, **asked: Unpack[history.Asked]) -> IssuedPassword:
    """Replace the password by a generated one, which its owner must replace; ends its sessions.

    Of an account with a duty it opens nothing before a second person confirms.
    """
    context = history.context_of(SET_FIRST_PASSWORD, **asked)
    row = authority.lock_account(account, context.by)
    issued = issue_password(row, context.at)
    authority.end_sessions(row, context.at)
    after = {"first_password_expires_at": issued.expires_at} | close_until_confirmed(row, context)
    history.record_change(row, context, after=after)
    return issued


def issue_password(account: StaffAccount, at: datetime) -> IssuedPassword:
    """Give the account a generated password and save it."""
    password = "-".join(
        "".join(secrets.choice(_LETTERS) for _ in range(_GROUP_LENGTH)) for _ in range(_GROUPS)
    )
    account.set_password(password)
    account.save()
    FirstPassword.objects.filter(user_id=account.pk).delete()
    first = FirstPassword.objects.create(user_id=account.pk, expires_at=at + LIFETIME)
    return IssuedPassword(account, password, first.expires_at)


@transaction.atomic
def choose_password(*, account: StaffAccount, password: str, by: Author, at: datetime) -> None:
    """The owner's new password in place of the present one, which may be the first one."""
    before: dict[str, Any] = {}
    first = FirstPassword.objects.select_for_update().filter(user_id=account.pk).first()
    if first is not None:
        before = {"first_password_expires_at": first.expires_at}
        first.delete()
    account.set_password(password)
    account.save(update_fields=["password"])
    context = history.ChangeContext(actions.CHANGE_OWN_PASSWORD, by, at)
    history.record_change(account, context, before=before, after=dict.fromkeys(before))


_NAMES = {
    Authenticator.Type.TOTP: "authenticator app",
    Authenticator.Type.WEBAUTHN: "passkey",
    Authenticator.Type.RECOVERY_CODES: "recovery codes",
}
MAX_NAME_LENGTH = 100  # of a passkey, in the history


RESET_SECOND_FACTOR = ByReason(
    actions.RESET_SECOND_FACTOR,
    "Reset the second step",
    "For a colleague who lost their phone or security key and has no recovery codes. Make sure"
    " that it is really them: call them, or meet them. All their second steps are removed, and"
    " they are signed out. At the next sign-in they set up a new one with their password.",
    unneeded=lambda row: (
        "" if row.authenticator_set.exists() else marked("It has no second step yet.")
    ),
)


@history.makes(RESET_SECOND_FACTOR, "account")
def reset_second_factor(*, account: StaffAccount, **asked: Unpack[history.Asked]) -> list[str]:
    """Remove every second step, so that the next sign-in sets up another; the removed ones.

    An account with a duty is closed before a second person confirms.
    """
    context = history.context_of(RESET_SECOND_FACTOR, **asked)
    row = authority.lock_account(account, context.by)
    found = Authenticator.objects.filter(user_id=row.pk)
    kinds = found.values_list("type", flat=True)
    names = sorted(_NAMES[Authenticator.Type(kind)] for kind in kinds)
    if not names:
        return []
    found.delete()
    # Who has the lost phone or key could have a session too, and set up a second step in it.
    authority.end_sessions(row, context.at)
    after = {"second_step": []} | close_until_confirmed(row, context)
    history.record_change(row, context, before={"second_step": names}, after=after)
    return names


@contextmanager
def recorded_own_second_steps(*, account: StaffAccount, by: Author, at: datetime) -> Iterator[None]:
    """Records how the owner changes the second steps inside: together with the change, or not."""
    with transaction.atomic():
        history.lock_for_update(account)
        before = _second_steps(account)
        yield
        after = _second_steps(account)
        changed = [name for name in before if before[name] != after[name]]
        if changed:
            history.record_change(
                account,
                history.ChangeContext(actions.CHANGE_OWN_SECOND_STEP, by, at),
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


END_SESSIONS = Operation(
    actions.END_SESSIONS,
    "End sessions",
    "The person is signed out there at once, and can sign in again. To prevent that, deactivate"
    " the account.",
    refusal=lambda row, at: "" if open_sessions(at, row) else _("It has no open session."),
)


@history.makes(END_SESSIONS, "account")
def end_open_sessions(
    *, account: StaffAccount, session: str = "", **asked: Unpack[history.Asked]
) -> StaffAccount:
    """End the session with this mark; empty: all. Nothing happens if there is none."""
    context = history.context_of(END_SESSIONS, **asked)
    row = authority.lock_account(account, context.by)
    before, after = authority.end_sessions(row, context.at, session)
    if before != after:
        history.record_change(
            row, context, before={"open_sessions": before}, after={"open_sessions": after}
        )
    return row
