"""One kind of record for staff: its list, the page of each record, and the tasks on both."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import BadRequest, ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from identity.staff.framework.badges import Badge
from identity.staff.framework.bulk_tasks import BulkTask
from identity.staff.framework.changes import recent_changes
from identity.staff.framework.filters import chips_of
from identity.staff.framework.lists import TOO_GENERAL, RecordPages, is_too_general
from identity.staff.framework.tasks import Button, Task
from taxpayers.redaction import HIDDEN

Views = Iterable[tuple[str, str, Callable[..., HttpResponseBase]]]


def pages_of(model: type[Model]) -> "RecordAdmin":
    """The pages of this kind of record."""
    found = admin.site.get_model_admin(model)
    assert isinstance(found, RecordAdmin)  # noqa: S101 - so are all of ours
    return found


def task_named(model: type[Model], name: str) -> Task:
    """The task with this name of this kind of record."""
    return next(task for task in pages_of(model).get_tasks() if task.name == name)


class RecordAdmin(RecordPages):
    """View-only, except for its tasks."""

    badge: "ClassVar[staticmethod[[Any, datetime], Badge]]"  # the state of a record at a moment
    has_history: ClassVar[bool] = True  # False: the history names none of them
    record_template: ClassVar[str] = "staff/framework/record.html"
    tasks: ClassVar[Sequence[type[Task]]] = ()
    bulk_tasks: ClassVar[Sequence[BulkTask]] = ()  # tasks for the selected records

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """What was typed comes in a body, and gets an address only without a secret."""
        if request.method == "POST" and SEARCH_VAR in request.POST:
            asked = request.POST.copy()
            asked.pop("csrfmiddlewaretoken", None)
            if HIDDEN in asked[SEARCH_VAR]:
                del asked[SEARCH_VAR]
            return HttpResponseRedirect(f"{request.path}?{asked.urlencode()}")
        response = super().changelist_view(request, extra_context)
        if is_too_general(request):
            messages.warning(request, TOO_GENERAL)
        # Django may answer with a redirect, and a bulk task with its own page.
        context = getattr(response, "context_data", None)
        if context is not None and "cl" in context:
            context |= self.list_context(request, context["cl"])
            context["breadcrumbs"] = [(self.list_title(), "")]
            context["chips"] = chips_of(request, context["cl"])
            context["actions_list"] = [
                {"title": b.title, "path": b.url, "variant": b.variant}
                for b in self.list_buttons(request)
            ]
        return response

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: Any) -> SafeString:
        """The column of a list: the state of each record now."""
        return self.badge(row, timezone.now()).html

    def list_context(self, request: HttpRequest, changelist: Any) -> dict[str, Any]:
        """What the list shows besides its rows."""
        return {}

    def list_buttons(self, request: HttpRequest) -> list[Button]:
        """Buttons of the tasks that need no record."""
        return [
            task.button_for()
            for task in self.get_tasks()
            if not task.is_for_record and task.is_allowed(request)
        ]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {
            one.name: (one, one.name, one.short_description)
            for one in self.bulk_tasks
            if one.task(self).is_allowed(request)
        }

    def response_action(
        self, request: HttpRequest, queryset: "QuerySet[Any]", *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        key = self.model._meta.pk
        try:
            for one in request.POST.getlist(ACTION_CHECKBOX_NAME):
                key.run_validators(key.to_python(one))
        except ValidationError:
            raise BadRequest("a selected record has no such key") from None
        return super().response_action(request, queryset, *args, **kwargs)

    def record_context(self, request: HttpRequest, record: Any, at: datetime) -> dict[str, Any]:
        """What the page of the record shows besides the record, its state and its history."""
        return {}

    def buttons(self, request: HttpRequest, record: Any, at: datetime) -> list[Button]:
        """Buttons of the tasks that this person may do with this record now."""
        return [
            task.button_for(record)
            for task in self.get_tasks()
            if task.is_for_record
            and task.has_button
            and task.is_allowed(request)
            and not task.refusal_for(request, record, at)
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        at = timezone.now()
        record = self.record_or_404(request, object_id)
        context = self.page_context(request, record, at)
        context["buttons"] = self.buttons(request, record, at)
        if hasattr(self, "badge"):
            context["state"] = self.badge(record, at)
        if self.has_history:
            context["changes"] = recent_changes(request, record)
        context |= self.record_context(request, record, at)
        return TemplateResponse(request, self.record_template, context)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        record = self.record_or_404(request, object_id)
        return HttpResponseRedirect(f"{self.record_url(record)}#history")

    def related_buttons(
        self, request: HttpRequest, *named: tuple[type[Model], str], **initial: str
    ) -> list[Button]:
        """Buttons of tasks for other records that this person may do, with values for the form."""
        tasks = (task_named(model, name) for model, name in named)
        return [
            Button(task.button_label, task.url(**initial))
            for task in tasks
            if task.is_allowed(request)
        ]

    def get_tasks(self) -> list[Task]:
        return [task(self) for task in self.tasks]

    def views(self) -> Views:
        """The name, the address and the view of each page besides the list and the records."""
        for task in self.get_tasks():
            below = "<path:object_id>/" if task.is_for_record else ""
            yield task.name, f"{below}{task.name}/", task.view

    def get_urls(self) -> list[URLPattern]:
        own = (
            path(address, self.admin_site.admin_view(view), name=self.url_name(name))
            for name, address, view in self.views()
        )
        return [*own, *super().get_urls()]
