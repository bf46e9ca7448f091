"""How staff see records: a list, a page for each, and the tasks on both."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone

from identity.staff.framework.bulk_tasks import BulkTask
from identity.staff.framework.record_pages import RecordPages
from identity.staff.framework.tasks import Button, Task


class RecordAdmin(RecordPages):
    """View-only but for its tasks."""

    record_template: ClassVar[str] = "staff/framework/record.html"
    tasks: ClassVar[Sequence[type[Task]]] = ()
    several: ClassVar[Sequence[BulkTask]] = ()  # tasks for all that are selected in the list

    # --- The list -----------------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        response = super().changelist_view(request, extra_context)
        # Without a list where Django answers with a redirect, or a task for several with its page
        context = getattr(response, "context_data", None)
        if context is not None and "cl" in context:
            context["crumbs"] = [(self.list_title(), "")]
            context["actions_list"] = [
                {"title": b.title, "path": b.url, "icon": b.icon, "variant": b.variant}
                for b in self.list_buttons(request)
            ]
        return response

    def list_buttons(self, request: HttpRequest) -> list[Button]:
        """What can be done without a record."""
        return [
            task.button_for()
            for task in self.own_tasks()
            if not task.is_for_record and task.may(request)
        ]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {
            one.name: (one, one.name, one.short_description)
            for one in self.several
            if one.task(self).may(request)
        }

    # --- The page of a record -----------------------------------------------------------------

    def record_context(self, request: HttpRequest, record: Any, at: datetime) -> dict[str, Any]:
        """What the page of the record shows."""
        return {}

    def buttons(self, request: HttpRequest, record: Any, at: datetime) -> list[Button]:
        """What can be done with the record, by this person, now."""
        return [
            task.button_for(record)
            for task in self.own_tasks()
            if task.is_for_record
            and task.has_button
            and task.may(request)
            and not task.refusal(record, at)
        ]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        at = timezone.now()
        record = self.record_or_404(request, object_id)
        context = self.page_context(request, record, at)
        context["buttons"] = self.buttons(request, record, at)
        return TemplateResponse(
            request, self.record_template, context | self.record_context(request, record, at)
        )

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        record = self.record_or_404(request, object_id)
        return HttpResponseRedirect(f"{self.record_url(record)}#history")

    def button_elsewhere(
        self, request: HttpRequest, model: type[Model], task: type[Task], **given: str
    ) -> list[Button]:
        """The button of another kind's task, told about this record; none if it may not be used."""
        admin = self.admin_site.get_model_admin(model)
        assert isinstance(admin, RecordAdmin)  # noqa: S101 - so are all of ours
        other = task(admin)
        if not other.may(request):
            return []
        button = other.button_for()
        return [replace(button, url=f"{button.url}?{urlencode(given)}", variant="default")]

    # --- What both need -----------------------------------------------------------------------

    def own_tasks(self) -> list[Task]:
        return [task(self) for task in self.tasks]

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path(
                f"<path:object_id>/{task.name}/" if task.is_for_record else f"{task.name}/",
                wrap(task.view),
                name=task.url_name,
            )
            for task in self.own_tasks()
        ]
        return own + super().get_urls()
