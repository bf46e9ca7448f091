"""One change of state is one page: it says what will happen, asks, and calls the service.

Every button of the staff's pages leads to such a page; nothing else in the admin writes.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from identity.staff.framework.forms import TaskForm
from identity.staff.framework.record_pages import RecordPages, Text
from taxpayers.services import Author, ServiceError


@dataclass(frozen=True, slots=True)
class Button:
    """A link that looks like a button."""

    title: Text
    url: str
    icon: str
    variant: str = "default"


class Task:
    """One thing that staff can do with a record, or (`is_for_record` False) without one.

    `name` is the service's own name for it: it stands in the address, and who may do it has the
    permission of that name.
    """

    name: ClassVar[str]
    title: ClassVar[Text]
    button: ClassVar[Text]
    says: ClassVar[Text] = ""
    icon: ClassVar[str] = "edit"
    variant: ClassVar[str] = "default"
    form: ClassVar[type[TaskForm]] = TaskForm
    template: ClassVar[str] = "staff/framework/task.html"
    is_for_record: ClassVar[bool] = True
    has_button: ClassVar[bool] = True  # on the page of the record; otherwise linked there in place
    app_label: ClassVar[str] = "taxpayers"

    def __init__(self, admin: RecordPages) -> None:
        self.admin = admin

    # --- What a task says of itself --------------------------------------------------------

    def refusal(self, record: Any, at: datetime) -> Text:
        """Why it makes no sense for this record now; empty if it does."""
        return ""

    def initial(self, request: HttpRequest, record: Any, at: datetime) -> dict[str, Any]:
        """What the form begins with: by default what the address names."""
        return dict(request.GET.items())

    def context(self, request: HttpRequest, record: Any, at: datetime) -> dict[str, Any]:
        """What else the page shows."""
        return {}

    def perform(self, record: Any, data: dict[str, Any], *, by: Author, at: datetime) -> Any:
        """Call the service. Raises ServiceError."""
        raise NotImplementedError

    def done(self, result: Any) -> Text:
        """What the person who did it reads afterwards."""
        raise NotImplementedError

    def shown_record(self, result: Any) -> Model:
        """The record whose page comes next."""
        assert isinstance(result, Model)  # noqa: S101 - what services answer with
        return result

    # --- Its page --------------------------------------------------------------------------

    @property
    def url_name(self) -> str:
        opts = self.admin.opts
        return f"{opts.app_label}_{opts.model_name}_{self.name}"

    def url(self, record: Any = None) -> str:
        return reverse(f"admin:{self.url_name}", args=self._arguments(record))

    def _arguments(self, record: Any) -> list[str]:
        return [quote(record.pk)] if self.is_for_record else []

    def may(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.app_label}.{self.name}")

    def button_for(self, record: Any = None) -> Button:
        return Button(self.button, self.url(record), self.icon, self.variant)

    def view(self, request: HttpRequest, object_id: str | None = None) -> HttpResponse:
        if not self.may(request):
            raise PermissionDenied
        at = timezone.now()
        record = self.admin.record_or_404(request, object_id) if object_id is not None else None
        if refusal := self.refusal(record, at):
            messages.info(request, str(refusal))
            return HttpResponseRedirect(self.admin.record_url(record))
        if request.method == "POST":
            form = self.form(request.POST, record=record)
            if form.is_valid():
                try:
                    result = self.perform(record, form.cleaned_data, by=author(request), at=at)
                except ServiceError as fault:
                    form.add_error(None, str(fault))
                else:
                    return self.answer(request, result)
        else:
            form = self.form(initial=self.initial(request, record, at), record=record)
        return self.page(request, record, form, at)

    def answer(self, request: HttpRequest, result: Any) -> HttpResponse:
        messages.success(request, str(self.done(result)))
        return HttpResponseRedirect(self.admin.record_url(self.shown_record(result)))

    def page(
        self, request: HttpRequest, record: Any, form: TaskForm, at: datetime
    ) -> TemplateResponse:
        context = self.admin.page_context(request, record, at, crumb=self.title)
        back = self.admin.record_url(record) if record else self.admin.list_url()
        context |= {"task": self, "form": form, "back": back}
        return TemplateResponse(request, self.template, context | self.context(request, record, at))


def author(request: HttpRequest) -> Author:
    """Who does it, and from which address."""
    return Author(request.user.get_username(), request.META.get("REMOTE_ADDR") or None)
