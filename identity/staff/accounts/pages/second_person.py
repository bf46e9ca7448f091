"""Tasks of the second person: confirm or decline what another one asked for an account."""

from datetime import datetime
from typing import Any, Unpack

from django import forms
from django.http import HttpRequest

from identity.staff.accounts.changes.second_person import (
    CONFIRM_ACCOUNT,
    DECLINE_ACCOUNT,
    confirm_account,
    reason_not_to_confirm,
)
from identity.staff.accounts.pages.state import titles_of, waiting_of
from identity.staff.accounts.pages.tasks import AccountTask
from identity.staff.framework.forms import TaskForm
from identity.staff.framework.lists import Text
from identity.staff.framework.tasks import Call, Data, author, task
from identity.staff.models import StaffAccount


class ShownForm(TaskForm):
    """Carries what the person saw: nothing else is confirmed."""

    shown = forms.CharField(widget=forms.HiddenInput, required=False)


class SecondPersonTask(AccountTask):
    template = "staff/accounts/second_person.html"

    def form_context(
        self, request: HttpRequest, record: Any, form: TaskForm, at: datetime
    ) -> dict[str, Any]:
        return {"waiting": waiting_of(record, at), "role": titles_of(record)}


class ConfirmAccount(SecondPersonTask):
    operation = CONFIRM_ACCOUNT
    form = ShownForm

    def refusal_for(self, request: HttpRequest, record: Any, at: datetime) -> Text:
        refusal = super().refusal_for(request, record, at)
        waiting = list(record.waiting_changes.all())
        return refusal or reason_not_to_confirm(waiting, author(request), at)

    def initial(self, request: HttpRequest, record: StaffAccount, at: datetime) -> dict[str, Any]:
        return {"shown": ",".join(str(one.pk) for one in record.waiting_changes.all())}

    def perform(self, record: StaffAccount, data: Data, **call: Unpack[Call]) -> StaffAccount:
        shown = frozenset(data["shown"].split(","))
        return confirm_account(account=record, reason=data["reason"], **call, shown=shown)


DeclineAccount = task(SecondPersonTask, DECLINE_ACCOUNT)
