"""Ends sessions of a staff account: one of them, or all."""

from datetime import datetime
from typing import Unpack

from django.contrib.sessions.models import Session
from django.utils.translation import gettext as _

from identity.staff import actions
from identity.staff.accounts.changes.authority import lock_account
from identity.staff.accounts.sign_ins import open_sessions
from identity.staff.models import StaffAccount
from taxpayers.actions import marked
from taxpayers.operations import Operation
from taxpayers.services.history import Asked, context_of, makes, record_change


def _why_none(row: StaffAccount, at: datetime) -> str:
    return "" if open_sessions(at, row) else _("It has no open session.")


END_SESSIONS = Operation(
    actions.END_SESSIONS,
    marked("End sessions"),
    marked(
        "The person is signed out there at once, and can sign in again. To prevent that, deactivate"
        " the account."
    ),
    refusal=_why_none,
)


@makes(END_SESSIONS, "account")
def end_open_sessions(
    *, account: StaffAccount, session: str = "", **asked: Unpack[Asked]
) -> StaffAccount:
    """End the session with this mark; empty: all. Nothing happens if there is none."""
    context = context_of(END_SESSIONS, **asked)
    row = lock_account(account, context.by)
    present = open_sessions(context.at, row)
    ended = [one.key for one in present if session in ("", one.mark)]
    if ended:
        Session.objects.filter(session_key__in=ended).delete()
        before, after = len(present), len(present) - len(ended)
        record_change(
            row, context, before={"open_sessions": before}, after={"open_sessions": after}
        )
    return row
