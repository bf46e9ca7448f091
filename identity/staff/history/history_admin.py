"""All pages of the history: the report, a change, a task, and *As of a date*. View-only."""

import json
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import BadRequest, PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse, reverse_lazy
from django.utils import timezone, translation
from django.utils.http import urlencode
from django.utils.translation import gettext as _, gettext_lazy, ngettext
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.framework import fields
from identity.staff.framework.changes import action_of, entry_of, may_see_as_of
from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.lists import Context, key_in
from identity.staff.framework.records import Views
from identity.staff.framework.related import ORDER
from identity.staff.framework.tasks import Button, Task, TaskForm
from identity.staff.history.as_of_answers import Pairs, system_user_as_of, taxpayer_as_of
from identity.staff.history.report import TITLE as REPORT, report_context, task_context
from identity.staff.history.report_form import ReportForm, query_of, record_of
from taxpayers.models import Change, SystemUser, Taxpayer
from taxpayers.moments import end_of_day, to_utc
from taxpayers.services.undo_import import UNDO_IMPORT, imported_by
from taxpayers.standing.as_of import history_begins_at

_SUGGESTED = fields.CODE | {"data-suggest": reverse_lazy("admin:taxpayers_taxpayer_suggest")}


class AsOfForm(forms.Form):
    """A taxpayer or a system user, a day, and a time of it. `moment` is in the cleaned data."""

    about = forms.CharField(
        label=gettext_lazy("Taxpayer or system user"),
        help_text=gettext_lazy("TIN, TIN:ROB, or client ID."),
        max_length=fields.MAX_IDENTIFIER_LENGTH,
        widget=UnfoldAdminTextInputWidget(attrs=_SUGGESTED),
    )
    day = forms.DateField(label=gettext_lazy("Day"), widget=fields.browser_calendar())
    time = forms.TimeField(
        label=gettext_lazy("Time"),
        required=False,
        input_formats=["%H:%M", "%H:%M:%S"],
        help_text=gettext_lazy("Leave empty for the end of the day."),
        widget=fields.browser_calendar(forms.TimeInput, "time", "%H:%M"),
    )

    def clean_about(self) -> Taxpayer | SystemUser:
        return record_of(self.cleaned_data["about"].strip())

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = self.cleaned_data
        if "day" in data and "time" in data:
            try:
                data["moment"] = self._moment(timezone.now())
            except OverflowError:  # the first and the last day of the calendar
                raise ValidationError(
                    {"day": self.fields["day"].error_messages["invalid"]}
                ) from None
        return data

    def _moment(self, now: datetime) -> datetime:
        """The moment asked for; of the present day without a time: now."""
        day, time = self.cleaned_data["day"], self.cleaned_data["time"]
        if time is None and day == timezone.localdate(now):
            return now
        asked = end_of_day(day) if time is None else to_utc(datetime.combine(day, time))
        if asked > now:
            raise ValidationError(
                {
                    "day": _(
                        "Choose a moment of the past. For the future, use Simulate a login, on the"
                        " list of logins."
                    )
                }
            )
        return asked


AS_OF = gettext_lazy("As of a date")
MAX_PAGE = 2_000  # an intermediary with more taxpayers is asked about one by one


def as_of_context(request: HttpRequest) -> dict[str, Any]:
    """The form, and the answer if one was asked for."""
    is_asked = "day" in request.GET
    shown = {"about": request.GET.get("about", ""), "day": timezone.localdate()}
    form = AsOfForm(request.GET) if is_asked else AsOfForm(initial=shown)
    context = {"form": form, "title": AS_OF}
    if not (is_asked and form.is_valid()):
        return context
    about, moment = form.cleaned_data["about"], form.cleaned_data["moment"]
    begins = history_begins_at()
    context |= {"is_asked": True, "moment": moment, "begins": begins}
    context |= {"about": about, "about_today": str(about)}  # `about` gets its values of then
    if begins is None or moment < begins:
        return context | {"is_unknown": True}
    context["when"] = urlencode({name: request.GET.get(name, "") for name in ("day", "time")})
    page = min(key_in(request.GET.get("p", "")) or 1, MAX_PAGE)
    if isinstance(about, SystemUser):
        kind, pairs, answer = "system_user", "represented", system_user_as_of(about, moment, page)
    else:
        kind, pairs, answer = "taxpayer", "acting", taxpayer_as_of(about, moment, page)
    return context | {kind: answer} | _pages(request, answer[pairs] if answer else None)


def _pages(request: HttpRequest, pairs: Pairs | None) -> dict[str, str]:
    """The links to the previous and the next page; empty where there is none."""
    if pairs is None:
        return {}
    asked = {name: request.GET.get(name, "") for name in ("about", "day", "time")}
    before, after = (f"?{urlencode(asked | {'p': pairs.page + step})}" for step in (-1, 1))
    has_next = pairs.has_more and pairs.page < MAX_PAGE
    return {
        "previous_url": before if pairs.page > 1 else "",
        "next_url": after if has_next else "",
    }


def _as_json(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, sort_keys=True) if values else ""


def _task(row: Change) -> str:
    """The same for all changes of one task, and for no other."""
    return str(row.task_id or f"{row.at.isoformat()} {row.by}")


class UndoImport(Task):
    operation = UNDO_IMPORT
    template = "staff/history/undo_import.html"

    def form_context(self, request: HttpRequest, form: TaskForm, at: datetime) -> Context:
        return {"count": imported_by(form.record).count()}

    def success_response(self, request: HttpRequest, result: int) -> HttpResponse:
        text = ngettext("{count} taxpayer was removed.", "{count} taxpayers were removed.", result)
        messages.success(request, text.format(count=result))
        return HttpResponseRedirect(self.admin.list_url())


class HistoryAdmin(ExportingAdmin):
    exported = (
        *("at", ("who", "by"), ("from", "address"), "action"),
        *(("kind", "object_type"), ("record_id", "object_id"), ("record", "label")),
        ("before", lambda row: _as_json(row.before)),
        ("after", lambda row: _as_json(row.after)),
        ("why", "reason"),
        ("task", _task),
    )
    tasks: ClassVar = (UndoImport,)
    record_template = "staff/history/change.html"
    has_history = False

    def views(self) -> Views:
        yield "report", "report/", self.report_view
        yield "task", "task/<int:key>/", self.task_view
        yield "as_of", "as_of/", self.as_of_view
        yield from super().views()

    def list_url(self, **query: Any) -> str:
        return reverse("admin:taxpayers_change_report", query=query)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """The report is the list."""
        self._require_history(request)
        return HttpResponseRedirect(self.list_url())

    def record_title(self, record: Change) -> str:
        return f"{action_of(record)}: {record.label}"

    def record_context(self, request: HttpRequest, record: Change, at: datetime) -> dict[str, Any]:
        return {"entry": entry_of(request, record)}

    # --- The report and its export --------------------------------------------------------------

    def report_view(self, request: HttpRequest) -> HttpResponse:
        self._require_history(request)
        context = report_context(request)
        buttons = []
        if may_see_as_of(request):
            buttons.append(Button(AS_OF, reverse("admin:taxpayers_change_as_of")))
        if self.may_export(request) and "lines" in context:
            buttons += self.export_buttons(query_of(request))
        return self._page(request, "staff/history/report.html", context | {"buttons": buttons})

    def task_view(self, request: HttpRequest, key: int) -> HttpResponse:
        self._require_history(request)
        change = self.record_or_404(request, str(key))
        buttons = self.buttons(request, change, timezone.now())
        context = task_context(request, change) | {"buttons": buttons}
        return self._page(request, "staff/history/task.html", context)

    def exported_rows(self, request: HttpRequest) -> "QuerySet[Change]":
        form = ReportForm(request.GET)
        if not form.is_valid():
            raise BadRequest("the report does not take these values")
        return form.changes().order_by(*ORDER)

    @translation.override("en")
    def filters(self, request: HttpRequest) -> str:
        form = ReportForm(request.GET)
        return form.in_words() if form.is_valid() else ""

    # --- As of a date ---------------------------------------------------------------------------

    def as_of_view(self, request: HttpRequest) -> HttpResponse:
        if not may_see_as_of(request):
            raise PermissionDenied
        return self._page(request, "staff/history/as_of.html", as_of_context(request))

    def _require_history(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        title = context.get("title", REPORT)
        frame = self.page_context(request, None, timezone.now(), breadcrumb=title)
        return TemplateResponse(request, template, frame | context)
