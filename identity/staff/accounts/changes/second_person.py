"""Two people: what one asks for an account with a duty takes effect when another one confirms.

A new role is given then. A new account, a first password, a reset second step and an activation
are made at once, but the account is not active before: so every way in is closed.
"""

from datetime import datetime, timedelta
from typing import Any, Unpack

from django.conf import settings
from django.contrib.auth.models import Group
from django.utils.translation import gettext as _

from identity.staff import actions
from identity.staff.accounts.changes import authority
from identity.staff.accounts.roles import ACCOUNT_MANAGER, ROLES, duties_of
from identity.staff.models import FirstPassword, StaffAccount, WaitingChange
from taxpayers.operations import Operation
from taxpayers.services import Author, ServiceError, history
from taxpayers.validation import refuse_if

LIFETIME = timedelta(days=7)


def has_duty(account: StaffAccount) -> bool:
    """Whether it may do more than read, or may when what waits is confirmed."""
    roles = [row.role for row in account.waiting_changes.all() if row.role]
    held = account.permissions_held.union(*(ROLES[role].permissions for role in roles))
    return account.is_superuser or bool(duties_of(held))


def close_until_confirmed(account: StaffAccount, context: history.ChangeContext) -> dict[str, Any]:
    """Deactivate it if a second person must confirm; what the history adds to the change."""
    if not (_is_asked_by_staff(context.by) and has_duty(account)):
        return {}
    account.is_active = False
    account.save(update_fields=["is_active"])
    authority.end_sessions(account, context.at)
    return {"is_active": False} | _ask(account, context)


def ask_for_role(account: StaffAccount, role: str, context: history.ChangeContext) -> bool:
    """Whether a second person must confirm this role; then it waits, and that is recorded."""
    account.waiting_changes.filter(action=context.action.name).delete()
    if not (_is_asked_by_staff(context.by) and duties_of(ROLES[role].permissions)):
        return False
    asked = {"asked_role": role} | _ask(account, context, role)
    history.record_change(account, context, after=asked)
    return True


def give_role(account: StaffAccount, role: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """This role and no other one, nor any permission besides; before and after."""
    before: dict[str, Any] = {"role": account.role}
    after: dict[str, Any] = {"role": role}
    if extra := sorted(account.user_permissions.values_list("codename", flat=True)):
        before["extra_permissions"], after["extra_permissions"] = extra, []
    if before == after:
        return {}, {}
    if role != ACCOUNT_MANAGER:
        authority.require_another_manager(account)
    account.is_superuser = False
    account.save(update_fields=["is_superuser"])
    account.groups.set([Group.objects.get(name=role)])
    account.user_permissions.clear()
    return before, after


def _why_nothing_waits(account: StaffAccount, _at: datetime) -> str:
    return _why_none(list(account.waiting_changes.all()))


def _why_none(waiting: list[WaitingChange]) -> str:
    return "" if waiting else _("Nothing waits for a second person.")


CONFIRM_ACCOUNT = Operation(
    actions.CONFIRM_ACCOUNT,
    "Confirm what was asked for",
    "It takes effect with this. Make sure that it is right: speak to the person whose account"
    " it is, and not only to the one who asked. You do not need the first password.",
    refusal=_why_nothing_waits,
)


@history.makes(CONFIRM_ACCOUNT, "account")
def confirm_account(
    *, account: StaffAccount, shown: frozenset[str] | None = None, **asked: Unpack[history.Asked]
) -> StaffAccount:
    """Carry out what others asked for, if it is what this person saw (`shown`: its ids)."""
    context = history.context_of(CONFIRM_ACCOUNT, **asked)
    row = authority.lock_account(account, context.by)
    waiting = list(row.waiting_changes.all())
    if shown is not None and shown != {str(one.pk) for one in waiting}:
        raise ServiceError(
            "Something else waits for this account by now. Look at it, and confirm again."
        )
    refuse_if(reason_not_to_confirm(waiting, context.by, context.at))
    confirmed = [one for one in waiting if may_confirm(one, context.by, context.at)]
    before: dict[str, Any] = {}
    after: dict[str, Any] = {"asked_by": ", ".join(sorted({one.asked_by for one in confirmed}))}
    for one in confirmed:
        if one.role:
            was, now = give_role(row, one.role)
            before, after = before | was, after | now
        one.delete()
    if any(not one.role for one in confirmed) and not row.waiting_changes.filter(role="").exists():
        before, after = before | {"is_active": row.is_active}, after | {"is_active": True}
        row.is_active = True
        row.save(update_fields=["is_active"])
    history.record_change(row, context, before=before, after=after)
    return row


DECLINE_ACCOUNT = Operation(
    actions.DECLINE_ACCOUNT,
    "Decline what was asked for",
    "None of it takes effect: the account keeps its role, and one that is not active stays so."
    " A first password that waited is void.",
    refusal=_why_nothing_waits,
)


@history.makes(DECLINE_ACCOUNT, "account")
def decline_account(*, account: StaffAccount, **asked: Unpack[history.Asked]) -> StaffAccount:
    """Nothing that waits is carried out: the role stays, and a closed account stays closed."""
    context = history.context_of(DECLINE_ACCOUNT, **asked)
    row = authority.lock_account(account, context.by)
    waiting = list(row.waiting_changes.all())
    refuse_if(_why_none(waiting))
    if any(one.action in _NEW_PASSWORD for one in waiting):  # its sender knows it
        row.set_unusable_password()
        row.save(update_fields=["password"])
        valid = FirstPassword.objects.filter(user_id=row.pk, expires_at__gt=context.at)
        valid.update(expires_at=context.at)
    row.waiting_changes.all().delete()
    before = {"asked_by": ", ".join(sorted({one.asked_by for one in waiting}))}
    if roles := [one.role for one in waiting if one.role]:
        [before["asked_role"]] = roles
    history.record_change(row, context, before=before, after=dict.fromkeys(before))
    return row


def may_confirm(waiting: WaitingChange, by: Author, at: datetime) -> bool:
    """Whether this person is a second one, and not too late."""
    return waiting.asked_by != by.name and not waiting.is_over(at)


def reason_not_to_confirm(waiting: list[WaitingChange], by: Author, at: datetime) -> str:
    """Why this person cannot confirm any of it; empty if they can."""
    if any(may_confirm(one, by, at) for one in waiting):
        return ""
    if refusal := _why_none(waiting):
        return refusal
    if all(one.is_over(at) for one in waiting):
        return _("It waited too long. Decline it, and ask for it again.")
    return _(
        "You asked for this. Another account manager confirms it, or an operator:"
        " manage.py confirm_account"
    )


_NEW_PASSWORD = (actions.CREATE_ACCOUNT.name, actions.SET_FIRST_PASSWORD.name)


def _is_asked_by_staff(by: Author) -> bool:
    return bool(settings.SECOND_PERSON_REQUIRED) and authority.staff_author(by) is not None


def _ask(account: StaffAccount, context: history.ChangeContext, role: str = "") -> dict[str, Any]:
    """It waits; what was asked before and is over, or is asked again, is replaced."""
    account.waiting_changes.filter(expires_at__lte=context.at).delete()
    account.waiting_changes.filter(action=context.action.name).delete()
    row = account.waiting_changes.create(
        action=context.action.name,
        role=role,
        asked_by=context.by.name,
        asked_at=context.at,
        expires_at=context.at + LIFETIME,
        reason=context.reason,
    )
    return {"waits_until": row.expires_at}
