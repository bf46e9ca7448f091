"""Tasks that show a first password once: create an account, and set a new first password."""

from datetime import datetime
from typing import Any, Unpack

from django import forms
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.accounts.changes.accounts import CREATE_ACCOUNT, MAX_NAME_LENGTH
from identity.staff.accounts.changes.authority import lock_account
from identity.staff.accounts.changes.first_passwords import (
    SET_FIRST_PASSWORD,
    IssuedPassword,
    set_first_password,
)
from identity.staff.accounts.pages.tasks import AccountTask, PersonField, RoleField
from identity.staff.framework.forms import ReasonField, TaskForm
from identity.staff.framework.secret_once import IssueOnceForm, shown_once
from identity.staff.framework.tasks import Call, Data
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.services import ServiceError


class FirstPasswordTask(AccountTask):
    """Its result is a page, never stored, that shows the password once."""

    def success_response(self, request: HttpRequest, result: IssuedPassword) -> HttpResponse:
        at, title = timezone.now(), gettext_lazy("First password")
        context = self.admin.page_context(request, result.account, at, breadcrumb=title)
        sign_in_url = f"{settings.STAFF_URL}{reverse('account_login')}"
        context |= {"issued": result, "sign_in_url": sign_in_url}
        return shown_once(request, "staff/accounts/first_password.html", context)


class CreateAccountForm(TaskForm):
    name = PersonField()
    username = forms.CharField(
        label=gettext_lazy("User name"),
        max_length=MAX_NAME_LENGTH,
        help_text=gettext_lazy(
            "For the sign-in and the history; it cannot be changed later. Letters, digits and"
            " . - _ @ +"
        ),
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )
    role = RoleField()
    reason = ReasonField()


class CreateAccount(FirstPasswordTask):
    operation = CREATE_ACCOUNT
    button_label = gettext_lazy("Create account")
    icon = "person_add"
    variant = "primary"
    form = CreateAccountForm
    may_wait = True
    is_for_record = False


class SetFirstPasswordForm(IssueOnceForm):
    reason = ReasonField()


class SetFirstPassword(FirstPasswordTask):
    operation = SET_FIRST_PASSWORD
    button_label = gettext_lazy("New first password")
    icon = "lock_reset"
    form = SetFirstPasswordForm
    may_wait = True

    def initial(self, request: HttpRequest, record: StaffAccount, at: datetime) -> dict[str, Any]:
        return {"newest": _newest(record)}

    @transaction.atomic
    def perform(self, record: StaffAccount, data: Data, **call: Unpack[Call]) -> IssuedPassword:
        lock_account(record, call["by"])
        if _newest(record) != data["newest"]:
            raise ServiceError(
                _(
                    "This form was already submitted, and the first password cannot be shown again."
                    " If it was not noted, go back and set another one."
                )
            )
        return set_first_password(account=record, reason=data["reason"], **call)


def _newest(account: StaffAccount) -> int:
    """The id of its first password; 0 if it has none."""
    keys = FirstPassword.objects.filter(user_id=account.pk).values_list("pk", flat=True)
    return keys.first() or 0
