"""One task for several selected records: one page names them and asks, then all change or none."""

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from identity.staff.framework.forms import TaskForm
from identity.staff.framework.record_pages import RecordPages, Text
from identity.staff.framework.tasks import Task, author
from identity.staff.sessions.unsaved_entries import UnsavedEntries
from taxpayers.services import Author, ServiceError

MAX_RECORDS = 500
MAX_LISTED = 20
_CONFIRMED = "confirmed"


class BulkTask:
    """A Task as one of Django's actions; `title` and `description` speak of several records.

    `form`: the form to use instead of that of the task.
    """

    do_not_call_in_templates = True

    def __init__(
        self,
        task: type[Task],
        title: Text,
        description: Text,
        form: type[TaskForm] | None = None,
    ) -> None:
        self.task = task
        self.form = form or task.form
        self.short_description = title  # the attribute that Django reads
        self.description = description
        self.name = f"bulk_{task.name}"

    def __call__(
        self, admin: RecordPages, request: HttpRequest, selected: "QuerySet[Any]"
    ) -> HttpResponse | None:
        """Show the page that asks; after confirmation make the change. None: back to the list."""
        task = self.task(admin)
        if not task.is_allowed(request):
            raise PermissionDenied
        at = timezone.now()
        records = list(selected[: MAX_RECORDS + 1])
        if len(records) > MAX_RECORDS:
            text = _("Select at most {max} records, or filter the list first.")
            messages.error(request, text.format(max=MAX_RECORDS))
            return None
        form = self.form(request.POST if _CONFIRMED in request.POST else None)
        if form.is_bound and form.is_valid():
            try:
                count = _perform_all(task, records, form.cleaned_data, author(request), at)
            except ServiceError as error:
                form.add_error(None, str(error))
            else:
                messages.success(request, self._success_message(count))
                return None
        return self._form_page(request, task, form, records, at)

    def form_again(
        self, admin: RecordPages, request: HttpRequest, keys: list[Any], restored: UnsavedEntries
    ) -> TemplateResponse:
        """The page that asks, with what was entered before the session ended."""
        records = list(admin.get_queryset(request).filter(pk__in=keys)[:MAX_RECORDS])
        form = self.form(restored.data if _CONFIRMED in restored.data else None)
        return self._form_page(request, self.task(admin), form, records, timezone.now(), restored)

    def _success_message(self, count: int) -> str:
        text = ngettext("{title}: {count} done.", "{title}: {count} done.", count)
        return text.format(title=self.short_description, count=count)

    def _form_page(
        self,
        request: HttpRequest,
        task: Task,
        form: TaskForm,
        records: list[Any],
        at: datetime,
        restored: UnsavedEntries | None = None,
    ) -> TemplateResponse:
        context = task.admin.page_context(request, None, at, breadcrumb=self.short_description) | {
            "task": task,
            "bulk_task": self,
            "restored": restored,
            "form": form,
            "records": records,
            "listed": records[:MAX_LISTED],
            "hidden": len(records) - MAX_LISTED,
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "back": f"{task.admin.list_url()}?{request.GET.urlencode()}",
        }
        return TemplateResponse(request, "staff/framework/bulk_task.html", context)


@transaction.atomic
def _perform_all(
    task: Task, records: list[Any], data: dict[str, Any], by: Author, at: datetime
) -> int:
    """How many were changed. Skips records for which the task is not possible now.

    Raises ServiceError at the first failure; then nothing is changed.
    """
    count = 0
    for record in records:
        if task.unavailable_reason(record, at):
            continue
        try:
            task.perform(record, data, by=by, at=at)
        except ServiceError as error:
            raise ServiceError(
                _("Nothing was changed. {record}: {error}").format(record=record, error=error)
            ) from None
        count += 1
    return count
