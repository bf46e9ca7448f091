"""Tasks of the second person: confirm or decline what another one asked for an account."""

from datetime import datetime
from typing import Any, Unpack

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.accounts.changes.second_person import (
    CONFIRM_ACCOUNT,
    DECLINE_ACCOUNT,
    confirm_account,
    reason_not_to_confirm,
)
from identity.staff.accounts.pages.state import titles_of, waiting_of
from identity.staff.accounts.pages.tasks import AccountTask
from identity.staff.framework.forms import ReasonForm, TaskForm
from identity.staff.framework.tasks import Call, Data
from identity.staff.models import StaffAccount
from taxpayers.services import Author


class ShownForm(ReasonForm):
    """Carries what the person saw: nothing else is confirmed."""

    shown = forms.CharField(widget=forms.HiddenInput, required=False)
    field_order = ("shown", "reason")


class SecondPersonTask(AccountTask):
    template = "staff/accounts/second_person.html"

    def form_context(
        self, request: HttpRequest, record: Any, form: TaskForm, at: datetime
    ) -> dict[str, Any]:
        return {"waiting": waiting_of(record, at), "role": titles_of(record)}


class ConfirmAccount(SecondPersonTask):
    operation = CONFIRM_ACCOUNT
    button_label = gettext_lazy("Confirm")
    icon = "how_to_reg"
    variant = "success"
    form = ShownForm

    def reason_against(self, record: StaffAccount, by: Author, at: datetime) -> str:
        waiting = list(record.waiting_changes.all())
        return super().reason_against(record, by, at) or reason_not_to_confirm(waiting, by, at)

    def initial(self, request: HttpRequest, record: StaffAccount, at: datetime) -> dict[str, Any]:
        return {"shown": ",".join(str(one.pk) for one in record.waiting_changes.all())}

    def perform(self, record: StaffAccount, data: Data, **call: Unpack[Call]) -> StaffAccount:
        shown = frozenset(data["shown"].split(","))
        return confirm_account(account=record, reason=data["reason"], **call, shown=shown)

    def success_message(self, result: StaffAccount) -> str:
        if result.waiting_changes.exists():
            return _("Confirmed. What you asked for yourself still waits for another person.")
        if not result.is_active:
            return _("Confirmed. {account} is not active.").format(account=result)
        return _("Confirmed. {account} can sign in.").format(account=result)


class DeclineAccount(SecondPersonTask):
    operation = DECLINE_ACCOUNT
    button_label = gettext_lazy("Decline")
    icon = "cancel"
    form = ReasonForm

    done = gettext_lazy("Declined. Nothing waits for {name} any more.")
