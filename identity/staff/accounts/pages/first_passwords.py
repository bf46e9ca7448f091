"""Tasks that show a first password once: create an account, and set a new first password."""

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.accounts.changes.accounts import CREATE_ACCOUNT, MAX_NAME_LENGTH
from identity.staff.accounts.changes.authority import lock_account
from identity.staff.accounts.changes.first_passwords import (
    SET_FIRST_PASSWORD,
    IssuedPassword,
)
from identity.staff.accounts.pages.tasks import AccountTask, RoleField
from identity.staff.framework.forms import NameField, TaskForm
from identity.staff.framework.secret_once import IssueOnceForm, IssueOnceTask, shown_once
from identity.staff.framework.tasks import task
from identity.staff.models import FirstPassword, StaffAccount
from taxpayers.services import Author


class FirstPasswordTask(AccountTask):
    """Its result is a page, never stored, that shows the password once."""

    def success_response(self, request: HttpRequest, result: IssuedPassword) -> HttpResponse:
        at, title = timezone.now(), gettext_lazy("First password")
        context = self.admin.page_context(request, result.account, at, breadcrumb=title)
        sign_in_url = f"{settings.STAFF_URL}{reverse('account_login')}"
        context |= {"issued": result, "sign_in_url": sign_in_url}
        return shown_once(request, "staff/accounts/first_password.html", context)


class CreateAccountForm(TaskForm):
    name = NameField(help_text=gettext_lazy("The full name of the person."))
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


CreateAccount = task(
    FirstPasswordTask,
    CREATE_ACCOUNT,
    button_label=gettext_lazy("Create account"),
    variant="primary",
    form=CreateAccountForm,
    may_wait=True,
    is_for_record=False,
)


class SetFirstPassword(FirstPasswordTask, IssueOnceTask):
    operation = SET_FIRST_PASSWORD
    button_label = gettext_lazy("New first password")
    form = IssueOnceForm
    may_wait = True

    def newest(self, owner: StaffAccount) -> int:
        keys = FirstPassword.objects.filter(user_id=owner.pk).values_list("pk", flat=True)
        return keys.first() or 0

    def lock(self, owner: StaffAccount, by: Author) -> None:
        lock_account(owner, by)
