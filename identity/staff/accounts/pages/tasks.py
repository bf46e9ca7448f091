"""Tasks for a staff account: rename, change the role, reset the second step, (de)activate."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar, Unpack

from django import forms
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget

from identity.staff.accounts.changes.accounts import (
    ACTIVATE_ACCOUNT,
    CHANGE_ROLE,
    DEACTIVATE_ACCOUNT,
    RENAME_ACCOUNT,
)
from identity.staff.accounts.changes.authority import lock_account, reason_against
from identity.staff.accounts.changes.second_steps import RESET_SECOND_FACTOR
from identity.staff.accounts.roles import ROLES
from identity.staff.framework.edit_conflicts import EditConflictForm, EditTask, RenameForm
from identity.staff.framework.forms import TaskForm
from identity.staff.framework.lists import Text
from identity.staff.framework.tasks import Call, Data, OperationTask, Task, author, task
from identity.staff.models import StaffAccount


def _choices() -> Iterator[tuple[str, SafeString]]:
    for name, role in ROLES.items():
        yield name, format_html("<strong>{}</strong><br>{}", role.title, role.duties)


class RoleField(forms.ChoiceField):
    widget = UnfoldAdminRadioSelectWidget

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

    def refusal_for(self, request: HttpRequest, record: Any, at: datetime) -> Text:
        reason = reason_against(record, author(request)) if record is not None else ""
        return reason or super().refusal_for(request, record, at)

    def form_context(
        self, request: HttpRequest, record: Any, form: TaskForm, at: datetime
    ) -> dict[str, Any]:
        return {"may_wait": self.may_wait and settings.SECOND_PERSON_REQUIRED}

    def success_message(self, result: Any) -> Text:
        if result.waiting_changes.exists():
            text = _("{account}: something waits for a second person. Its page says what.")
            return text.format(account=result)
        return super().success_message(result)


class AccountEdit(EditTask, AccountTask):
    @transaction.atomic
    def perform(self, record: Any, data: Data, **call: Unpack[Call]) -> Any:
        lock_account(record, call["by"])  # before the row: see there
        return super().perform(record, data, **call)


RenameAccount = task(AccountEdit, RENAME_ACCOUNT, form=RenameForm)


class RoleForm(EditConflictForm):
    watched: ClassVar = {"role": "role"}

    role = RoleField()


ChangeRole = task(
    AccountEdit, CHANGE_ROLE, button_label=gettext_lazy("Change role"), form=RoleForm, may_wait=True
)


class ResetSecondFactor(OperationTask, AccountTask):
    operation = RESET_SECOND_FACTOR
    button_label = gettext_lazy("Reset second step")
    may_wait = True

    def perform(self, record: StaffAccount, data: Data, **call: Unpack[Call]) -> StaffAccount:
        super().perform(record, data, **call)
        return StaffAccount.objects.get(pk=record.pk)


class ActivateAccount(OperationTask, AccountTask):
    operation = ACTIVATE_ACCOUNT
    may_wait = True

    def unavailable_reason(self, record: StaffAccount, at: datetime) -> Text:
        if any(not (row.role or row.is_over(at)) for row in record.waiting_changes.all()):
            return _("It waits for a second person.")
        return super().unavailable_reason(record, at)


class DeactivateAccount(OperationTask, AccountTask):
    operation = DEACTIVATE_ACCOUNT
