"""One task for several records at once: confirmed on a page that names them, then all or none."""

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
from taxpayers.services import Author, ServiceError

MOST = 500
MOST_LISTED = 20
_CONFIRMED = "confirmed"


class BulkTask:
    """Django's action for a Task: `title` says it of several records, `says` what will happen.

    `form`: what is asked, where that is not the same as for one record.
    """

    do_not_call_in_templates = True

    def __init__(
        self, task: type[Task], title: Text, says: Text, form: type[TaskForm] | None = None
    ) -> None:
        self.task = task
        self.form = form or task.form
        self.short_description = title
        self.says = says
        self.name = f"{task.name}_several"

    def __call__(
        self, admin: RecordPages, request: HttpRequest, selected: "QuerySet[Any]"
    ) -> HttpResponse | None:
        """The page that asks; once confirmed, done. None: back to the list."""
        task = self.task(admin)
        if not task.may(request):
            raise PermissionDenied
        at = timezone.now()
        records = list(selected[: MOST + 1])
        if len(records) > MOST:
            messages.error(
                request, _("Select at most {most}, or narrow the list first.").format(most=MOST)
            )
            return None
        form = self.form(request.POST if _CONFIRMED in request.POST else None)
        if form.is_bound and form.is_valid():
            try:
                done = _perform(task, records, form.cleaned_data, author(request), at)
            except ServiceError as fault:
                form.add_error(None, str(fault))
            else:
                messages.success(request, self._said(done))
                return None
        return self._page(request, task, form, records, at)

    def _said(self, done: int) -> str:
        text = ngettext("{title}: {count} done.", "{title}: {count} done.", done)
        return text.format(title=self.short_description, count=done)

    def _page(
        self,
        request: HttpRequest,
        task: Task,
        form: TaskForm,
        records: list[Any],
        at: datetime,
    ) -> TemplateResponse:
        context = task.admin.page_context(request, None, at, crumb=self.short_description) | {
            "task": task,
            "several": self,
            "form": form,
            "records": records,
            "listed": records[:MOST_LISTED],
            "hidden": len(records) - MOST_LISTED,
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "back": f"{task.admin.list_url()}?{request.GET.urlencode()}",
        }
        return TemplateResponse(request, "staff/framework/bulk_task.html", context)


@transaction.atomic
def _perform(task: Task, records: list[Any], data: dict[str, Any], by: Author, at: datetime) -> int:
    """How many it was done to; where it makes no sense, for example twice, nothing is done."""
    done = 0
    for record in records:
        if task.refusal(record, at):
            continue
        try:
            task.perform(record, data, by=by, at=at)
        except ServiceError as fault:
            raise ServiceError(
                _("Nothing was done. {record}: {fault}").format(record=record, fault=fault)
            ) from None
        done += 1
    return done
