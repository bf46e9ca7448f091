"""First passwords: generated, shown once, replaced by their owner; and later own passwords."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Unpack

from django.db import transaction

from identity.staff import actions
from identity.staff.accounts.changes.authority import end_sessions, lock_account
from identity.staff.accounts.changes.second_person import LIFETIME, close_until_confirmed
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.actions import marked
from taxpayers.operations import Operation
from taxpayers.services.history import (
    Asked,
    Author,
    ChangeContext,
    context_of,
    makes,
    record_change,
)

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
    marked("Set a new first password"),
    marked(
        "For a colleague who forgot their password. Make sure that it is really them: call them, or"
        " meet them. The old password stops working, and they are signed out. The new first"
        " password is shown once; they replace it at the next sign-in. Their second step stays."
    ),
)


@makes(SET_FIRST_PASSWORD, "account")
def set_first_password(*, account: StaffAccount, **asked: Unpack[Asked]) -> IssuedPassword:
    """Replace the password by a generated one, which its owner must replace; ends its sessions.

    Of an account with a duty it opens nothing before a second person confirms.
    """
    context = context_of(SET_FIRST_PASSWORD, **asked)
    row = lock_account(account, context.by)
    issued = issue_password(row, context.at)
    end_sessions(row, context.at)
    after = {"first_password_expires_at": issued.expires_at} | close_until_confirmed(row, context)
    record_change(row, context, after=after)
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
    context = ChangeContext(actions.CHANGE_OWN_PASSWORD, by, at)
    record_change(account, context, before=before, after=dict.fromkeys(before))
