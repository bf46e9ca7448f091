"""Staff accounts: the list, its filters and its export, and the page of one."""

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy

from identity.staff.accounts.changes.authority import reason_against
from identity.staff.accounts.changes.second_person import reason_not_to_confirm
from identity.staff.accounts.pages import state, tasks
from identity.staff.accounts.pages.sign_ins import EndSessions, shown_sessions
from identity.staff.accounts.roles import ROLES
from identity.staff.display import moment
from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.filters import ChoiceFilter, Choices, StateFilter
from identity.staff.framework.lists import Context, column
from identity.staff.framework.tasks import author
from identity.staff.models import SUPERUSER, FirstPassword, StaffAccount, WaitingChange


class RoleFilter(ChoiceFilter):
    title = gettext_lazy("role")
    parameter_name = "role"

    def conditions(self, at: datetime) -> Choices:
        roles = {
            name: (role.title, Q(is_superuser=False, groups__name=name))
            for name, role in ROLES.items()
        }
        return roles | {SUPERUSER: (gettext_lazy("Superuser"), Q(is_superuser=True))}


class AccountStateFilter(StateFilter):
    def conditions(self, at: datetime) -> Choices:
        active = Q(is_active=True, is_staff=True)
        waiting = WaitingChange.objects.values("account_id")
        return {
            "active": (gettext_lazy("Active"), active),
            "not_active": (gettext_lazy("Not active"), ~active),
            "first_password": (gettext_lazy("First password"), Q(first_password__isnull=False)),
            "waiting": (state.WAITS, Q(pk__in=waiting)),
            "no_second_step": (gettext_lazy("No second step"), Q(authenticator__isnull=True)),
        }


def _second_step(row: StaffAccount) -> str:
    kinds = {factor.type for factor in row.authenticator_set.all()}
    return " ".join(sorted(kinds - {Authenticator.Type.RECOVERY_CODES}))


def _first_password_until(row: StaffAccount) -> datetime | None:
    """None: its owner has chosen a password."""
    first: FirstPassword | None = getattr(row, "first_password", None)
    return first.expires_at if first else None


def _second_steps(row: StaffAccount) -> str:
    return ", ".join(map(str, state.second_steps_of(row))) or gettext("None yet")


class StaffAccountAdmin(ExportingAdmin):
    exported = (
        *(("user_name", "username"), "name", "role"),
        ("active", lambda row: row.is_active and row.is_staff),
        ("second_step", _second_step),
        ("first_password_until", _first_password_until),
        *(("last_sign_in", "last_login"), ("created", "date_joined")),
    )
    list_display = (
        column("user_name", gettext_lazy("user name"), lambda row: row.username),
        column("full_name", gettext_lazy("name"), lambda row: row.name or "—"),
        column("role_title", gettext_lazy("role"), state.titles_of),
        column("second_step", gettext_lazy("second step"), _second_steps),
        column("last_sign_in", gettext_lazy("last sign-in"), lambda row: moment(row.last_login)),
        "state",
    )
    linked_columns = 2
    list_filter = (RoleFilter, AccountStateFilter)
    joined = ("first_password",)
    prefetched = (
        *("authenticator_set", "waiting_changes"),
        *("groups__permissions__content_type", "user_permissions__content_type"),
    )
    ordering = ("username",)
    search_help_text = gettext_lazy("User name, or name")
    record_template = "staff/accounts/account.html"
    badge = staticmethod(state.badge_of_account)
    tasks: ClassVar = (
        tasks.CreateAccount,
        tasks.ConfirmAccount,
        tasks.DeclineAccount,
        tasks.ChangeRole,
        tasks.SetFirstPassword,
        tasks.ResetSecondFactor,
        EndSessions,
        tasks.RenameAccount,
        tasks.ActivateAccount,
        tasks.DeactivateAccount,
    )

    def record_title(self, record: StaffAccount) -> str:
        return record.name or record.username

    def search_conditions(self, term: str) -> Iterable[Q]:
        # Without an index: an authority has hundreds of accounts, not millions.
        return [
            Q(username__istartswith=term),
            Q(first_name__icontains=term),
            Q(last_name__icontains=term),
        ]

    def record_context(self, request: HttpRequest, record: StaffAccount, at: datetime) -> Context:
        by, may_change = author(request), any(t.is_allowed(request) for t in self.get_tasks())
        waiting = state.waiting_of(record, at)
        return {
            "roles": state.roles_of(record),
            "second_steps": state.second_steps_of(record),
            "is_second_step_required": settings.SECOND_FACTOR_REQUIRED,
            "reason_against": reason_against(record, by) if may_change else "",
            "waiting": waiting,
            "sessions": shown_sessions(at, record),
            "reason_not_to_confirm": (
                reason_not_to_confirm(list(record.waiting_changes.all()), by, at)
                if waiting and may_change
                else ""
            ),
        }
