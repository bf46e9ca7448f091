"""All pages of the history: the report, a change, a task, and *As of a date*. View-only."""

import json
from datetime import datetime
from typing import Any, ClassVar

from django.contrib import messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import ngettext

from identity.staff.framework.changes import action_of, entry_of, may_see_as_of
from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.lists import Context
from identity.staff.framework.records import Views
from identity.staff.framework.related import ORDER
from identity.staff.framework.tasks import Button, Task, TaskForm
from identity.staff.history.as_of_page import TITLE as AS_OF, as_of_context
from identity.staff.history.report import TITLE as REPORT, report_context, task_context
from identity.staff.history.report_form import ReportForm, query_of
from taxpayers.models import Change
from taxpayers.services.undo_import import UNDO_IMPORT, imported_by


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
        self._require_history(request)
        return HttpResponseRedirect(self.list_url())  # the report

    def record_title(self, record: Change) -> str:
        return f"{action_of(record)}: {record.label}"

    def record_context(self, request: HttpRequest, record: Change, at: datetime) -> dict[str, Any]:
        return {"entry": entry_of(request, record)}

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
