"""Who may change which staff account, for pages and commands alike; and how its sessions end."""

from datetime import datetime

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from identity.staff.accounts.roles import ACCOUNT_MANAGER
from identity.staff.accounts.sign_ins import open_sessions
from identity.staff.models import StaffAccount
from taxpayers.services import Author, ServiceError
from taxpayers.services.history import lock_for_update
from taxpayers.validation import refuse_if


def lock_account(account: StaffAccount, by: Author) -> StaffAccount:
    """The account as it is now, locked. Raises ServiceError if `by` must not change it."""
    # The managers first and in one order: two who change each other wait, and do not deadlock.
    list(_managers().order_by("pk").select_for_update())
    row = lock_for_update(account)
    refuse_if(reason_against(row, by))
    return row


def reason_against(account: StaffAccount, by: Author) -> str:
    """Why this person must not change this account; empty if they may."""
    author = staff_author(by)
    if author is None:
        return ""
    if author.pk == account.pk:
        return _("This is your own account. Ask another account manager to change it.")
    if account.is_superuser and not author.is_superuser:
        return _("Only a superuser can change the account of a superuser.")
    return ""


def staff_author(by: Author) -> StaffAccount | None:
    """The account of the person; None: an operator, with a command."""
    return StaffAccount.objects.filter(username=by.name).first()


def require_another_manager(account: StaffAccount) -> None:
    """Raises ServiceError if no other person could manage accounts. Only after `lock_account`."""
    is_one, others = _managers().filter(pk=account.pk), _managers().exclude(pk=account.pk)
    if is_one.exists() and not others.exists():
        raise ServiceError(
            "{account} is the last active account that can manage accounts. First give another"
            " account the role of account manager.",
            account=account,
        )


def _managers() -> "QuerySet[StaffAccount]":
    in_role = StaffAccount.groups.through.objects.filter(group__name=ACCOUNT_MANAGER)
    can_manage = Q(pk__in=in_role.values("user_id"))
    if settings.SECOND_PERSON_REQUIRED:  # superusers only read
        can_manage &= Q(is_superuser=False)
    else:
        can_manage |= Q(is_superuser=True)
    return StaffAccount.objects.filter(can_manage, is_active=True, is_staff=True)


def end_sessions(account: StaffAccount, at: datetime, mark: str = "") -> tuple[int, int]:
    """End all its sessions, or the one with this mark; how many were open before, and are now."""
    present = open_sessions(at, account)
    ended = [one.key for one in present if mark in ("", one.mark)]
    Session.objects.filter(session_key__in=ended).delete()
    return len(present), len(present) - len(ended)
