"""Tasks for a staff account: rename, change the role, reset the second step, (de)activate."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar, Unpack

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextInputWidget

from identity.staff.accounts.changes.accounts import (
    ACTIVATE_ACCOUNT,
    CHANGE_ROLE,
    DEACTIVATE_ACCOUNT,
    MAX_NAME_LENGTH,
    RENAME_ACCOUNT,
)
from identity.staff.accounts.changes.authority import lock_account, reason_against
from identity.staff.accounts.changes.second_steps import RESET_SECOND_FACTOR
from identity.staff.accounts.roles import ROLES
from identity.staff.framework.edit_conflicts import EditConflictForm, EditTask
from identity.staff.framework.forms import ReasonField, TaskForm
from identity.staff.framework.lists import Text
from identity.staff.framework.tasks import Call, Data, OperationTask, Task, author
from identity.staff.models import StaffAccount
from taxpayers.services import Author


class PersonField(forms.CharField):
    widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Name"),
            max_length=MAX_NAME_LENGTH,
            help_text=gettext_lazy("The full name of the person."),
        )


class _EveryRole(UnfoldAdminRadioSelectWidget):
    """Reads every role that was sent: two of them are refused, not reduced to the last one."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        return " + ".join(data.getlist(name)) if hasattr(data, "getlist") else data.get(name)


def _choices() -> Iterator[tuple[str, SafeString]]:
    for name, role in ROLES.items():
        yield name, format_html("<strong>{}</strong><br>{}", role.title, role.duties)


class RoleField(forms.ChoiceField):
    widget = _EveryRole

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Role"),
            choices=_choices,
            error_messages={
                "required": gettext_lazy("Choose a role."),
                "invalid_choice": gettext_lazy(
                    "Choose one of these roles. No one can be registrar and security officer at"
                    " once: with both, one person could let in a client that does not exist."
                ),
            },
        )


class AccountTask(Task):
    """A task for the account of another person: staff do not change their own."""

    template = "staff/accounts/task.html"
    may_wait = False  # for a second person

    def reason_against(self, record: StaffAccount, by: Author, at: datetime) -> str:
        """Why this person must not do it; empty if they may."""
        return reason_against(record, by)

    def view(self, request: HttpRequest, object_id: str | None = None) -> HttpResponse:
        if object_id is not None and self.is_allowed(request):
            record = self.admin.record_or_404(request, object_id)
            if reason := self.reason_against(record, author(request), timezone.now()):
                messages.error(request, reason)
                return HttpResponseRedirect(self.admin.record_url(record))
        return super().view(request, object_id)

    def form_context(
        self, request: HttpRequest, record: Any, form: TaskForm, at: datetime
    ) -> dict[str, Any]:
        return {"may_wait": self.may_wait and settings.SECOND_PERSON_REQUIRED}


class AccountEdit(EditTask, AccountTask):
    @transaction.atomic
    def perform(self, record: Any, data: Data, **call: Unpack[Call]) -> Any:
        lock_account(record, call["by"])  # before the row: see there
        return super().perform(record, data, **call)


class RenameForm(EditConflictForm):
    watched: ClassVar = {"name": "name"}

    name = PersonField()
    reason = ReasonField()


class RenameAccount(AccountEdit):
    operation = RENAME_ACCOUNT
    button_label = gettext_lazy("Rename")
    form = RenameForm

    def success_message(self, result: StaffAccount) -> str:
        return _("The new name is saved: {name}.").format(name=result.name)


class RoleForm(EditConflictForm):
    watched: ClassVar = {"role": "role"}

    role = RoleField()
    reason = ReasonField()


class ChangeRole(AccountEdit):
    operation = CHANGE_ROLE
    button_label = gettext_lazy("Change role")
    icon = "badge"
    form = RoleForm
    may_wait = True

    def success_message(self, result: StaffAccount) -> str:
        if result.waiting_changes.exclude(role="").exists():
            return _("The new role of {account} waits for a second person.").format(account=result)
        return _("The role of {account} is changed.").format(account=result)


class ResetSecondFactor(OperationTask, AccountTask):
    operation = RESET_SECOND_FACTOR
    button_label = gettext_lazy("Reset second step")
    icon = "phonelink_erase"
    may_wait = True
    done = gettext_lazy("{name} sets up a new second step at the next sign-in.")

    def perform(self, record: StaffAccount, data: Data, **call: Unpack[Call]) -> StaffAccount:
        super().perform(record, data, **call)
        return StaffAccount.objects.get(pk=record.pk)

    def success_message(self, result: StaffAccount) -> Text:
        return super().success_message(result) if result.is_active else _closed(result)


def _closed(account: StaffAccount) -> str:
    return _("{account} can sign in when a second person has confirmed it.").format(account=account)


class ActivateAccount(OperationTask, AccountTask):
    operation = ACTIVATE_ACCOUNT
    button_label = gettext_lazy("Activate")
    icon = "toggle_on"
    variant = "success"
    may_wait = True
    done = gettext_lazy("{name} can sign in again.")

    def unavailable_reason(self, record: StaffAccount, at: datetime) -> Text:
        if any(not (row.role or row.is_over(at)) for row in record.waiting_changes.all()):
            return _("It waits for a second person.")
        return super().unavailable_reason(record, at)

    def success_message(self, result: StaffAccount) -> Text:
        return super().success_message(result) if result.is_active else _closed(result)


class DeactivateAccount(OperationTask, AccountTask):
    operation = DEACTIVATE_ACCOUNT
    button_label = gettext_lazy("Deactivate")
    icon = "toggle_off"
    done = gettext_lazy("{name} can no longer sign in.")
