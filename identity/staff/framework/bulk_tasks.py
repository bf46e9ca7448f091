"""One task for several selected records: one page shows what it does to each, then asks.

The form carries a fingerprint of the preview: if the preview has changed by then, it is shown
again. All records that it did not refuse change, as one task of the history, or none.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet, prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from identity.staff.framework.lists import RecordPages, Text
from identity.staff.framework.tasks import Preview, Task, TaskForm, author, with_reason
from taxpayers.sandbox.clients import sandbox_name
from taxpayers.services import Author, ServiceError

MAX_RECORDS = 500
_CONFIRMED, _PREVIEWED = "confirmed", "previewed"


Plan = Sequence[tuple[Any, Preview]]  # each record, and what the task would do with it


class BulkTask:
    """A Task as one of Django's actions; `title` and `description` speak of several records."""

    do_not_call_in_templates = True

    def __init__(
        self,
        task: type[Task],
        title: Text,
        description: Text,
        form: type[TaskForm] | None = None,  # instead of that of the task
        related: tuple[str, ...] = (),  # what the preview reads besides the records
    ) -> None:
        self.task = task
        self.title = self.short_description = title  # the latter is the attribute that Django reads
        self.description = description
        self.form = with_reason(form, task.operation) if form else task.form
        self.related = related
        self.name = f"bulk_{task.name}"
        self.variant = "primary" if task.variant == "default" else task.variant

    def __call__(
        self, admin: RecordPages, request: HttpRequest, selected: "QuerySet[Any]"
    ) -> HttpResponse | None:
        """Show the page that asks; after confirmation make the change. None: back to the list."""
        if not self.task(admin).is_allowed(request):
            raise PermissionDenied
        at = timezone.now()
        records = list(selected[: MAX_RECORDS + 1])
        if len(records) > MAX_RECORDS:
            text = _("Select at most {max} records, or filter the list first.")
            messages.error(request, text.format(max=MAX_RECORDS))
            return None
        prefetch_related_objects(records, *self.related)
        return self._respond(admin, request, records, at)

    def _respond(
        self, admin: RecordPages, request: HttpRequest, records: list[Any], at: datetime
    ) -> HttpResponse | None:
        task = self.task(admin)
        is_confirmed = _CONFIRMED in request.POST
        sent = self.form(request.POST)
        is_valid = sent.is_valid()
        # A form that was not confirmed shows what was entered, and no errors yet but those of what
        # decides a preview that was asked for again.
        decides = self.form.decides if _PREVIEWED in request.POST else ()
        if not is_confirmed:
            for name in set(sent.errors).difference(decides):
                del sent.errors[name]
        is_bound = is_confirmed or bool(sent.errors)
        entered = {n: request.POST[n] for n in self.form.base_fields if n in request.POST}
        form = sent if is_bound else self.form(initial=entered)
        plan = [(record, _preview(task, record, sent.cleaned_data, at)) for record in records]
        seen = fingerprint(plan)
        if is_confirmed and is_valid:
            if request.POST.get(_PREVIEWED) != seen:
                form.add_error(None, _("The preview has changed. Check it, then confirm."))
            else:
                try:
                    count = perform_all(task, plan, sent.cleaned_data, author(request), at)
                except ServiceError as error:
                    form.add_error(None, str(error))
                else:
                    messages.success(request, self._success_message(count, len(plan) - count))
                    return None
        refused = sum(bool(preview.refusal) for _record, preview in plan)
        context = admin.page_context(request, None, at, breadcrumb=self.title) | {
            "hidden": [
                ("action", self.name),
                *((ACTION_CHECKBOX_NAME, record.pk) for record in records),
            ],
            "back": f"{admin.list_url()}?{request.GET.urlencode()}",
            "bulk": self,
            "form": form,
            "plan": plan,
            "fingerprint": seen,
            "count": len(plan) - refused,
            "refused": refused,
            "can_preview_again": bool(self.form.decides),
        }
        return TemplateResponse(request, "staff/framework/bulk_task.html", context)

    def _success_message(self, count: int, refused: int) -> str:
        text = ngettext("{title}: {count} done.", "{title}: {count} done.", count)
        done = text.format(title=self.title, count=count)
        if not refused:
            return done
        text = ngettext("{count} was not changed.", "{count} were not changed.", refused)
        return f"{done} {text.format(count=refused)}"


def _preview(task: Task, record: Any, data: dict[str, Any], at: datetime) -> Preview:
    """What the task would do; a client of the sandbox stays as its list says, for everybody."""
    preview, refusal = task.preview(record, data, at), task.refusal(record, at)
    if sandbox_name(getattr(record, "client_id", "")):
        refusal = _("A client of the sandbox: everybody has its secret. Do not change it.")
    return Preview(preview.before, refusal=refusal) if refusal else preview


def fingerprint(plan: Plan) -> str:
    """The same for two plans of a task that would do the same to the same records."""
    lines = (
        f"{record.pk}|{preview.before}|{preview.after}|{preview.refusal}"
        for record, preview in plan
    )
    return sha256("\n".join(lines).encode()).hexdigest()


@transaction.atomic
def perform_all(task: Task, plan: Plan, data: dict[str, Any], by: Author, at: datetime) -> int:
    """How many were changed: all that the plan does not refuse, or none (ServiceError)."""
    by = by.in_one_task()
    changing = [record for record, preview in plan if not preview.refusal]
    for record in changing:
        try:
            task.perform(record, data, by=by, at=at)
        except ServiceError as error:
            raise ServiceError(
                "Nothing was changed. {record}: {error}", record=record, error=error
            ) from None
    return len(changing)
