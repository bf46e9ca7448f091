"""*Sign-ins of staff*: how each ended and from where, and the sessions that are open."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.accounts.changes.sign_in import END_SESSIONS
from identity.staff.accounts.pages.tasks import AccountTask
from identity.staff.accounts.sign_ins import OpenSession, open_sessions
from identity.staff.display import moment
from identity.staff.framework import fields
from identity.staff.framework.badges import Badge
from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.filters import ChoiceFilter, Choices
from identity.staff.framework.lists import Context, column
from identity.staff.framework.search import came_from, network_in
from identity.staff.framework.tasks import TaskForm, task
from identity.staff.models import StaffAccount, StaffSignIn
from taxpayers.moments import moment_text


def _outcome(row: StaffSignIn) -> Badge:
    is_good = row.outcome == StaffSignIn.SIGNED_IN
    return Badge(row.get_outcome_display(), "good" if is_good else "bad")


class OutcomeFilter(ChoiceFilter):
    title = gettext_lazy("result")
    parameter_name = "outcome"

    def conditions(self, at: datetime) -> Choices:
        failed = (gettext_lazy("Any failure"), ~Q(outcome=StaffSignIn.SIGNED_IN))
        each = {name: (title, Q(outcome=name)) for name, title in StaffSignIn.OUTCOMES}
        return {"failed": failed, **each}


class SignInAdmin(ExportingAdmin):
    exported = ("at", "outcome", "username", "address", "program")
    list_display = (
        column("when", gettext_lazy("when"), lambda row: moment(row.at)),
        column("result", gettext_lazy("result"), lambda row: _outcome(row).html),
        column("user_name", gettext_lazy("user name"), lambda row: row.username or "—"),
        column("address", gettext_lazy("source address"), lambda row: row.address or "—"),
        column("program", gettext_lazy("program"), lambda row: row.program or "—"),
    )
    list_filter = (OutcomeFilter,)
    search_help_text = gettext_lazy("User name, address or network")
    record_template = "staff/accounts/sign_in.html"
    has_history = False

    def search_conditions(self, term: str) -> Iterable[Q]:
        network = network_in(term)
        return [came_from(network, StaffSignIn, "address") if network else Q(username__iexact=term)]

    def list_context(self, request: HttpRequest, changelist: Any) -> Context:
        sessions = shown_sessions(timezone.now())
        return {"list_notice": "staff/accounts/open_sessions.html", "sessions": sessions}

    def record_context(self, request: HttpRequest, record: StaffSignIn, at: datetime) -> Context:
        account = StaffAccount.objects.filter(username=record.username).first()
        return {"state": _outcome(record), "account": account}


def shown_sessions(
    at: datetime, account: StaffAccount | None = None
) -> list[tuple[OpenSession, StaffAccount | None]]:
    """Each with its account."""
    found = open_sessions(at, account)
    named = StaffAccount.objects.in_bulk([int(one.account_id) for one in found])
    return [(one, named.get(int(one.account_id))) for one in found]


class EndSessionsForm(TaskForm):
    session = fields.RadioField(label=gettext_lazy("Session"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found = open_sessions(timezone.now(), self.record)
        choices = [("", _("All of them")), *((one.mark, _text(one)) for one in found)]
        self.fields["session"].choices = choices  # type: ignore[attr-defined]  # it has some


def _text(one: OpenSession) -> str:
    since = moment_text(one.since) if one.since else "—"
    return _("since {moment}, from {address}, {program}").format(
        moment=since, address=one.address or "—", program=one.program or "—"
    )


EndSessions = task(AccountTask, END_SESSIONS, form=EndSessionsForm)
