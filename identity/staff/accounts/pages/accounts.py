"""Staff accounts: the list and the page of one."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from identity.staff.accounts.changes.authority import reason_against
from identity.staff.accounts.pages.exports import STAFF_ACCOUNTS
from identity.staff.accounts.pages.filters import AccountStateFilter, RoleFilter
from identity.staff.accounts.pages.first_passwords import CreateAccount, SetFirstPassword
from identity.staff.accounts.pages.second_person import ConfirmAccount, DeclineAccount
from identity.staff.accounts.pages.state import (
    badge_of_account,
    roles_of,
    second_steps_of,
    titles_of,
    waiting_of,
)
from identity.staff.accounts.pages.tasks import (
    ActivateAccount,
    ChangeRole,
    DeactivateAccount,
    RenameAccount,
    ResetSecondFactor,
)
from identity.staff.display import moment
from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.tasks import Button, author
from identity.staff.history.changes import recent_changes
from identity.staff.models import StaffAccount


class StaffAccountAdmin(ExportingAdmin):
    export = STAFF_ACCOUNTS
    list_display = ("user_name", "full_name", "role_title", "second_step", "last_sign_in", "state")
    list_display_links = ("user_name", "full_name")
    list_filter = (RoleFilter, AccountStateFilter)
    ordering = ("username",)
    search_fields = ("username",)
    search_help_text = gettext_lazy("User name, or any part of the name.")
    record_template = "staff/accounts/account.html"
    tasks: ClassVar = (
        CreateAccount,
        ConfirmAccount,
        DeclineAccount,
        ChangeRole,
        SetFirstPassword,
        ResetSecondFactor,
        RenameAccount,
        ActivateAccount,
        DeactivateAccount,
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

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Any]":
        rows: QuerySet[Any] = super().get_queryset(request)
        related = rows.select_related("first_password")
        return related.prefetch_related(
            *("authenticator_set", "waiting_changes"),
            *("groups__permissions__content_type", "user_permissions__content_type"),
        )

    def buttons(self, request: HttpRequest, record: StaffAccount, at: datetime) -> list[Button]:
        by, confirm = author(request), ConfirmAccount(self)
        if reason_against(record, by):
            return []
        hidden = confirm.url(record) if confirm.reason_against(record, by, at) else ""
        return [one for one in super().buttons(request, record, at) if one.url != hidden]

    def record_context(
        self, request: HttpRequest, record: StaffAccount, at: datetime
    ) -> dict[str, Any]:
        by, may_change = author(request), any(t.is_allowed(request) for t in self.get_tasks())
        waiting = waiting_of(record, at)
        return {
            "state": badge_of_account(record, at),
            "roles": roles_of(record),
            "second_steps": second_steps_of(record),
            "is_second_step_required": settings.SECOND_FACTOR_REQUIRED,
            "reason_against": reason_against(record, by) if may_change else "",
            "waiting": waiting,
            "reason_not_to_confirm": (
                ConfirmAccount(self).reason_against(record, by, at)
                if waiting and may_change
                else ""
            ),
            "changes": recent_changes(request, record),
        }

    @admin.display(description=gettext_lazy("user name"))
    def user_name(self, row: StaffAccount) -> str:
        return row.username

    @admin.display(description=gettext_lazy("name"))
    def full_name(self, row: StaffAccount) -> str:
        return row.name or "—"

    @admin.display(description=gettext_lazy("role"))
    def role_title(self, row: StaffAccount) -> str:
        return titles_of(row)

    @admin.display(description=gettext_lazy("second step"))
    def second_step(self, row: StaffAccount) -> str:
        return ", ".join(map(str, second_steps_of(row))) or str(gettext_lazy("None yet"))

    @admin.display(description=gettext_lazy("last sign-in"))
    def last_sign_in(self, row: StaffAccount) -> str:
        return moment(row.last_login)

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: StaffAccount) -> str:
        return badge_of_account(row, timezone.now()).html
