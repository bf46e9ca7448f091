"""Tasks for a staff account; two show a first password once, two are for a second person."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Unpack

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.accounts.changes import accounts, second_person, sign_in
from identity.staff.accounts.changes.authority import lock_account, reason_against
from identity.staff.accounts.pages.state import ASKED, titles_of, waiting_of
from identity.staff.accounts.roles import ROLES
from identity.staff.framework import fields
from identity.staff.framework.edit_conflicts import EditConflictForm, EditTask, RenameForm
from identity.staff.framework.lists import Context, Text
from identity.staff.framework.secret_once import IssueOnceForm, IssueOnceTask
from identity.staff.framework.tasks import Call, Data, Task, TaskForm, author, task
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.services import Author


def _choices() -> Iterator[tuple[str, SafeString]]:
    for name, role in ROLES.items():
        yield name, format_html("<strong>{}</strong><br>{}", role.title, role.duties)


RoleField = partial(
    fields.RadioField,
    label=gettext_lazy("Role"),
    choices=_choices,
    error_messages={
        "required": gettext_lazy("Choose a role."),
        "invalid_choice": gettext_lazy(
            "Choose one of these roles. No one can be registrar and security officer at once: with"
            " both, one person could let in a client that does not exist."
        ),
    },
)


class AccountTask(Task):
    """A task for the account of another person: staff do not change their own."""

    template = "staff/accounts/task.html"

    def refusal_for(self, request: HttpRequest, record: Any, at: datetime) -> Text:
        reason = reason_against(record, author(request)) if record is not None else ""
        return reason or super().refusal_for(request, record, at)

    def lock(self, record: StaffAccount, by: Author) -> StaffAccount:
        return lock_account(record, by)

    def form_context(self, request: HttpRequest, form: TaskForm, at: datetime) -> Context:
        may_wait = self.operation.action in (accounts.CHANGE_ROLE.action, *ASKED)
        return {"may_wait": may_wait and settings.SECOND_PERSON_REQUIRED}

    def success_message(self, result: Any) -> Text:
        if result.waiting_changes.exists():
            text = _("{account}: something waits for a second person. Its page says what.")
            return text.format(account=result)
        return super().success_message(result)


class AccountEdit(EditTask, AccountTask):
    pass


RenameAccount = task(AccountEdit, accounts.RENAME_ACCOUNT, form=RenameForm)


class RoleForm(EditConflictForm):
    watched: ClassVar = {"role": "role"}

    role = RoleField()


ChangeRole = task(
    AccountEdit,
    accounts.CHANGE_ROLE,
    button_label=gettext_lazy("Change role"),
    form=RoleForm,
)


class ResetSecondFactor(AccountTask):
    operation = sign_in.RESET_SECOND_FACTOR
    button_label = gettext_lazy("Reset second step")

    def perform(self, record: StaffAccount, data: Data, **call: Unpack[Call]) -> StaffAccount:
        super().perform(record, data, **call)
        return StaffAccount.objects.get(pk=record.pk)


class ActivateAccount(AccountTask):
    operation = accounts.ACTIVATE_ACCOUNT

    def refusal(self, record: StaffAccount, at: datetime) -> Text:
        if any(not (row.role or row.is_over(at)) for row in record.waiting_changes.all()):
            return _("It waits for a second person.")
        return super().refusal(record, at)


DeactivateAccount = task(AccountTask, accounts.DEACTIVATE_ACCOUNT)


class ShownForm(TaskForm):
    """Carries what the person saw: nothing else is confirmed."""

    shown = forms.CharField(widget=forms.HiddenInput, required=False)

    def clean_shown(self) -> frozenset[str]:
        return frozenset(self.cleaned_data["shown"].split(","))


class SecondPersonTask(AccountTask):
    template = "staff/accounts/second_person.html"

    def form_context(self, request: HttpRequest, form: TaskForm, at: datetime) -> Context:
        return {"waiting": waiting_of(form.record, at), "role": titles_of(form.record)}


class ConfirmAccount(SecondPersonTask):
    operation = second_person.CONFIRM_ACCOUNT
    form = ShownForm

    def refusal_for(self, request: HttpRequest, record: Any, at: datetime) -> Text:
        refusal = super().refusal_for(request, record, at)
        waiting = list(record.waiting_changes.all())
        return refusal or second_person.reason_not_to_confirm(waiting, author(request), at)

    def initial(self, request: HttpRequest, record: StaffAccount, at: datetime) -> dict[str, Any]:
        return {"shown": ",".join(str(one.pk) for one in record.waiting_changes.all())}


DeclineAccount = task(SecondPersonTask, second_person.DECLINE_ACCOUNT)


class FirstPasswordTask(AccountTask):
    """Its result is a page, never stored, that shows the password once."""

    def success_response(
        self, request: HttpRequest, result: sign_in.IssuedPassword
    ) -> HttpResponse:
        at, title = timezone.now(), gettext_lazy("First password")
        context = self.admin.page_context(request, result.account, at, breadcrumb=title)
        sign_in_url = f"{settings.STAFF_URL}{reverse('account_login')}"
        context |= {"issued": result, "sign_in_url": sign_in_url}
        return TemplateResponse(request, "staff/accounts/first_password.html", context)


class CreateAccountForm(TaskForm):
    name = fields.NameField(help_text=gettext_lazy("The full name of the person."))
    username = forms.CharField(
        label=gettext_lazy("User name"),
        max_length=accounts.MAX_NAME_LENGTH,
        help_text=gettext_lazy(
            "For the sign-in and the history; it cannot be changed later. Letters, digits and"
            " . - _ @ +"
        ),
        widget=UnfoldAdminTextInputWidget(attrs=fields.CODE | {"autocapitalize": "none"}),
    )
    role = RoleField()


CreateAccount = task(
    FirstPasswordTask,
    accounts.CREATE_ACCOUNT,
    button_label=gettext_lazy("Create account"),
    variant="primary",
    form=CreateAccountForm,
)


class SetFirstPassword(FirstPasswordTask, IssueOnceTask):
    operation = sign_in.SET_FIRST_PASSWORD
    button_label = gettext_lazy("New first password")
    form = IssueOnceForm

    def newest(self, owner: StaffAccount) -> int:
        keys = FirstPassword.objects.filter(user_id=owner.pk).values_list("pk", flat=True)
        return keys.first() or 0
