"""Tasks: one page for each change explains it, asks, and calls the service. Nothing else writes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypedDict, TypeVar, Unpack

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from identity.staff.actions import permission_to
from identity.staff.framework.fields import EvidenceField, ReasonField
from identity.staff.framework.lists import Context, RecordPages, Text
from identity.staff.sessions import UnsavedEntries, take_entries
from taxpayers.operations import ByReason, Operation, Reason, by_reason_in
from taxpayers.services import Author, ServiceError
from taxpayers.services.history import lock_for_update
from taxpayers.services.management_clients import why_only_operators

Data = dict[str, Any]  # the cleaned values of a form
# The first word of an operation as a button on the page of its record.
_LABELS = {
    "activate": gettext_lazy("Activate"),
    "approve": gettext_lazy("Approve"),
    "block": gettext_lazy("Block"),
    "confirm": gettext_lazy("Confirm"),
    "deactivate": gettext_lazy("Deactivate"),
    "decline": gettext_lazy("Decline"),
    "extend": gettext_lazy("Extend"),
    "rename": gettext_lazy("Rename"),
    "unblock": gettext_lazy("Unblock"),
}
# The fields of forms that services call otherwise.
_ARGUMENTS = {
    "identifier": "taxpayer",
    "expires": "expires_at",
    "secret_expires": "secret_expires_at",
    "retire_old": "retire_old_at",
    "last_day": "last_moment",
    "networks": "allowed_networks",
    "token_binding": "binding",
}


class Call(TypedDict):
    by: Author
    at: datetime


@dataclass(frozen=True, slots=True)
class Button:
    title: Text
    url: str
    variant: str = "default"


@dataclass(frozen=True, slots=True)
class Preview:
    """What a task would do with one record."""

    before: Text = ""
    after: Text = ""
    note: Text = ""  # what else to know before it is done
    refusal: Text = ""  # why it would not change the record


class TaskForm(forms.Form):
    restored: UnsavedEntries | None = None  # what was entered before a sign-in, shown again
    decides: ClassVar[tuple[str, ...]] = ()  # the fields that change the preview of a bulk task

    def __init__(
        self, data: Any = None, files: Any = None, *, record: Any = None, initial: Any = None
    ) -> None:
        super().__init__(data, files, initial=initial)
        self.record = record
        for field in self.fields.values():
            if isinstance(field, EvidenceField):
                field.required = settings.EVIDENCE_REQUIRED


def with_reason(form: type[TaskForm], operation: Operation) -> type[TaskForm]:
    """The form, which asks why if the operation does; one that asks in its own way is left."""
    is_asked = operation.reason in (Reason.REQUIRED, Reason.ALWAYS)
    if not is_asked or "reason" in form.base_fields:
        return form
    return type(form.__name__, (form,), {"reason": ReasonField(), "__doc__": form.__doc__})


class Task:
    """One change that staff can make to a record, or without one, if its operation makes one.

    What it says comes from the record of its `operation`, as far as the task does not say it
    itself. Its name is part of the URL; staff need the permission with the name of its action.
    """

    operation: ClassVar[Operation]
    name: ClassVar[str]
    title: ClassVar[Text]
    button_label: ClassVar[Text]
    description: ClassVar[Text]
    variant: ClassVar[str] = "default"
    form: ClassVar[type[TaskForm]] = TaskForm
    template: ClassVar[str] = "staff/framework/task.html"
    is_for_record: ClassVar[bool]
    leads_to: ClassVar[str] = ""  # which attribute of the result is shown next; empty: itself
    has_button: ClassVar[bool] = True  # False: the page of the record has its own links to it
    # Whether it could help to log in as the system user: not for those of the management API.
    gives_access: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if operation := cls.__dict__.get("operation"):
            cls.name = operation.name
            if "title" not in cls.__dict__:
                cls.title = gettext_lazy(operation.title)
            cls.description = gettext_lazy(operation.effect) if operation.effect else ""
            if not hasattr(cls, "button_label"):
                cls.button_label = _LABELS.get(cls.name.partition("_")[0], cls.title)
            if "is_for_record" not in cls.__dict__:
                cls.is_for_record = bool(operation.row)
            if operation.is_danger:
                cls.variant = "danger"
            cls.form = with_reason(cls.form, operation)

    def __init__(self, admin: RecordPages) -> None:
        self.admin = admin

    # --- What a subclass fills in ----------------------------------------------------------

    def refusal(self, record: Any, at: datetime) -> Text:
        """Why the pages do not do it with this record now; empty if they do."""
        if record is None:
            return ""
        if self.gives_access and (only_operators := why_only_operators(record)):
            return only_operators
        if isinstance(self.operation, ByReason):
            return gettext(self.operation.unneeded(record))
        return self.operation.refusal(record, at)

    def refusal_for(self, request: HttpRequest, record: Any, at: datetime) -> Text:
        """The same, for this person."""
        return self.refusal(record, at)

    def preview(self, record: Any, data: dict[str, Any], at: datetime) -> "Preview":
        """What a bulk task would do with this record; `data` may lack fields."""
        raise NotImplementedError

    def initial(self, request: HttpRequest, record: Any, at: datetime) -> dict[str, Any]:
        """The initial values of the form: by default the query string."""
        return dict(request.GET.items())

    def lock(self, record: Any, by: Author) -> Any:
        """The record as it is now, locked until the end of the transaction."""
        return lock_for_update(record)

    def form_context(self, request: HttpRequest, form: TaskForm, at: datetime) -> Context:
        """What the page with the form shows besides the record and the form."""
        return {}

    def perform(self, record: Any, data: Data, **call: Unpack[Call]) -> Any:
        """Call the service, by default with the values of the form. Raises ServiceError."""
        given = {_ARGUMENTS.get(name, name): value for name, value in data.items()}
        return self.operation.run(record, **given, **call)

    def success_message(self, result: Any) -> Text:
        past = self.operation.action.past_of(getattr(result, "kind", None))
        return f"{gettext(past)}: {self.next_record(result)}"

    def next_record(self, result: Any) -> Model:
        """The record whose page is shown after success."""
        record = getattr(result, self.leads_to) if self.leads_to else result
        assert isinstance(record, Model)  # noqa: S101 - what services return
        return record

    # --- Its page --------------------------------------------------------------------------

    def url(self, record: Any = None, **initial: Any) -> str:
        """Its address, perhaps with values for the form."""
        arguments = [quote(record.pk)] if self.is_for_record else []
        name = f"admin:{self.admin.url_name(self.name)}"
        return reverse(name, args=arguments, query=initial)

    @property
    def permission(self) -> str:
        return permission_to(self.operation.action)

    def is_allowed(self, request: HttpRequest) -> bool:
        return request.user.has_perm(self.permission)

    def button_for(self, record: Any = None, **initial: Any) -> Button:
        return Button(self.button_label, self.url(record, **initial), self.variant)

    def view(self, request: HttpRequest, object_id: str | None = None) -> HttpResponse:
        if not self.is_allowed(request):
            raise PermissionDenied
        at = timezone.now()
        record = self.admin.record_or_404(request, object_id) if object_id is not None else None
        if reason := self.refusal_for(request, record, at):
            messages.info(request, str(reason))
            return HttpResponseRedirect(self.admin.record_url(record))
        if request.method == "POST":
            form = self.form(request.POST, request.FILES, record=record)
            if form.is_valid():
                try:
                    result = self.perform(record, form.cleaned_data, by=author(request), at=at)
                except ServiceError as error:
                    form.add_error(_at_fault(form, error), str(error))
                else:
                    return self.success_response(request, result)
        elif (restored := take_entries(request)) is not None:
            form = self.form(restored.data, record=record)
            form.restored = restored
        else:
            form = self.form(initial=self.initial(request, record, at), record=record)
        return self.form_page(request, form, at)

    def success_response(self, request: HttpRequest, result: Any) -> HttpResponse:
        messages.success(request, str(self.success_message(result)))
        return HttpResponseRedirect(self.admin.record_url(self.next_record(result)))

    def form_page(self, request: HttpRequest, form: TaskForm, at: datetime) -> HttpResponse:
        context = self.admin.page_context(request, form.record, at, breadcrumb=self.title)
        context |= {"task": self, "form": form, "back": self.admin.record_url(form.record)}
        context["lead"] = form.record and self.admin.lead(form.record)
        context |= self.form_context(request, form, at)
        return TemplateResponse(request, self.template, context)


_TaskType = TypeVar("_TaskType", bound=Task)


def task(base: type[_TaskType], operation: Operation, **more: Any) -> type[_TaskType]:
    """A task that is described by its operation; `more` is what a class would have in its body."""
    return type(operation.name, (base,), {"operation": operation, **more})


def tasks_by_reason(services: Mapping[str, Any], *by_hand: type[Task]) -> tuple[type[Task], ...]:
    """One for each operation of these services that needs only a reason."""
    found = {one.operation: one for one in by_hand}
    return tuple(found.get(each) or task(Task, each) for each in by_reason_in(services))


def _at_fault(form: TaskForm, error: ServiceError) -> str | None:
    """The field that the service names; None: it is about the whole form."""
    shown = (field.name for field in form.visible_fields())
    return next((n for n in shown if {n, _ARGUMENTS.get(n)}.intersection(error.fields)), None)


def author(request: HttpRequest) -> Author:
    """The signed-in person and the address that the request came from."""
    return Author(request.user.get_username(), request.META.get("REMOTE_ADDR") or None)
