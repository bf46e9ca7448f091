"""Changes of staff accounts: create, rename, give a role, activate and deactivate."""

import unicodedata
from typing import Unpack

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from identity.staff import actions
from identity.staff.accounts.changes import authority, second_person, sign_in
from identity.staff.accounts.roles import ROLES
from identity.staff.models import StaffAccount
from taxpayers.operations import ByReason, Operation, unneeded_if_active, unneeded_if_inactive
from taxpayers.services import ServiceError, history
from taxpayers.validation import validate_known, validate_text

MAX_NAME_LENGTH = 150  # as long as the columns are


CREATE_ACCOUNT = Operation(
    actions.CREATE_ACCOUNT,
    "Create a staff account",
    "One account for each person. A first password is shown once: give it to the person"
    " yourself. At the first sign-in they choose their own password and set up a second step.",
)


@history.makes(CREATE_ACCOUNT)
def create_account(
    *, username: str, name: str, role: str, **asked: Unpack[history.Asked]
) -> sign_in.IssuedPassword:
    """Create an account with one role and a first password, which is shown once.

    With a duty it is not active before a second person confirms.
    """
    context = history.context_of(CREATE_ACCOUNT, **asked)
    account = StaffAccount(
        username=_validate_username(username),
        first_name=validate_text(name, _("a name"), MAX_NAME_LENGTH),
        is_staff=True,
        date_joined=context.at,
    )
    group = _group(role)
    try:
        with transaction.atomic():
            issued = sign_in.issue_password(account, context.at)
    except IntegrityError:  # created by another person at this moment
        raise _taken(account) from None
    account.groups.add(group)
    after = {
        "username": account.username,
        "name": account.name,
        "role": role,
        "first_password_expires_at": issued.expires_at,
    }
    after |= second_person.close_until_confirmed(account, context)
    history.record_change(account, context, after=after)
    return issued


RENAME_ACCOUNT = Operation(
    actions.RENAME_ACCOUNT,
    "Rename the account",
    "This changes the name of the person. The user name stays, because the history names it.",
)


@history.makes(RENAME_ACCOUNT, "account")
def rename_account(
    *, account: StaffAccount, name: str, **asked: Unpack[history.Asked]
) -> StaffAccount:
    """Change the name of the person; the user name stays, because the history names it."""
    context = history.context_of(RENAME_ACCOUNT, **asked)
    row = authority.lock_account(account, context.by)
    before, after = row.name, validate_text(name, _("a name"), MAX_NAME_LENGTH)
    if before != after:
        row.first_name, row.last_name = after, ""
        row.save(update_fields=["first_name", "last_name"])
        history.record_change(row, context, before={"name": before}, after={"name": after})
    return row


CHANGE_ROLE = Operation(
    actions.CHANGE_ROLE,
    "Change the role",
    "An account has one role. The new role replaces the old one, also for a person who is"
    " signed in.",
)


@history.makes(CHANGE_ROLE, "account")
def change_role(
    *, account: StaffAccount, role: str, **asked: Unpack[history.Asked]
) -> StaffAccount:
    """Give the account this role and no other; a role with a duty waits for a second person."""
    context = history.context_of(CHANGE_ROLE, **asked)
    _group(role)
    row = authority.lock_account(account, context.by)
    if row.roles == [role] and not row.user_permissions.exists():
        return row
    if not second_person.ask_for_role(row, role, context):
        before, after = second_person.give_role(row, role)
        history.record_change(row, context, before=before, after=after)
    return row


ACTIVATE_ACCOUNT = ByReason(
    actions.ACTIVATE_ACCOUNT,
    "Activate the account",
    "It can sign in again, with the password, the second step and the role that it has.",
    unneeded=lambda row: unneeded_if_active(row) if row.is_staff else "",
)
DEACTIVATE_ACCOUNT = ByReason(
    actions.DEACTIVATE_ACCOUNT,
    "Deactivate the account",
    "For a colleague who leaves. They are signed out at once and cannot sign in any more. The"
    " account stays, because the history names it; it can be activated again.",
    is_danger=True,
    unneeded=unneeded_if_inactive,
)


@history.switches(ACTIVATE_ACCOUNT, DEACTIVATE_ACCOUNT, "account")
def set_account_active(
    *, account: StaffAccount, is_active: bool, **asked: Unpack[history.Asked]
) -> StaffAccount:
    """Let the account sign in, or end its sessions now and refuse every further sign-in.

    With a duty a second person opens it: see `account.is_active`.
    """
    operation = ACTIVATE_ACCOUNT if is_active else DEACTIVATE_ACCOUNT
    context = history.context_of(operation, **asked)
    row = authority.lock_account(account, context.by)
    if not is_active:
        authority.require_another_manager(row)
        authority.end_sessions(row, context.at)
        history.update_and_record(row, context, is_active=False)
        return row
    if not row.is_staff:  # from before accounts were created here
        row.is_staff, row.is_active = True, False
        row.save(update_fields=["is_staff", "is_active"])
    if ACTIVATE_ACCOUNT.unneeded(row):
        return row
    if after := second_person.close_until_confirmed(row, context):
        history.record_change(row, context, before={"is_active": False}, after=after)
        return row
    row.waiting_changes.filter(role="").delete()  # only a new role still waits
    history.update_and_record(row, context, is_active=True)
    return row


def _group(role: str) -> Group:
    [known] = validate_known([role], ROLES, _("role"))
    return Group.objects.get(name=known)


def _validate_username(text: str) -> str:
    username = unicodedata.normalize("NFKC", text.strip())
    try:
        StaffAccount._meta.get_field("username").run_validators(username)
    except ValidationError as error:
        told = " ".join(error.messages)  # outside the call: the catalogue reads what is in it
        raise ServiceError(told) from None
    if not username:
        raise ServiceError("Give {what}: it is missing or blank.", what=_("a user name"))
    # Two names that differ in one capital letter would be taken for one person.
    if (other := StaffAccount.objects.filter(username__iexact=username).first()) is not None:
        raise _taken(other)
    return username


def _taken(account: StaffAccount) -> ServiceError:
    return ServiceError(
        "There is already an account with the user name {username}. If it is for the same"
        " person, open that account; otherwise choose another user name.",
        username=account.username,
    )
