"""Tasks for the end of a record: extend it, or set an earlier end. Two tasks on purpose."""

from datetime import datetime
from typing import Any, ClassVar, Unpack

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.framework import fields
from identity.staff.framework.edit_conflicts import EditConflictForm
from identity.staff.framework.lists import Context, Text
from identity.staff.framework.tasks import Call, Data, Preview, Task, TaskForm, task
from taxpayers.facts.validity import is_over
from taxpayers.models import GrantedPermission
from taxpayers.moments import moment_text
from taxpayers.operations import Operation
from taxpayers.services import end_earlier, ends, extend

YEAR, DAY = "year", "day"


class ExtendForm(EditConflictForm):
    expires = fields.EndField(label=gettext_lazy("New last day"))


class EndEarlierForm(EditConflictForm):
    expires = fields.LastDayField(label=gettext_lazy("New last day"))


class BulkExtendForm(TaskForm):
    decides = ("length", "expires")

    length = fields.RadioField(
        label=gettext_lazy("How long"),
        choices=[
            (
                YEAR,
                gettext_lazy("+ 1 year for each: from its old end, or from today if it has passed"),
            ),
            (DAY, gettext_lazy("The same last day for all")),
        ],
        initial=YEAR,
    )
    expires = fields.LastDayField(label=gettext_lazy("Last day for all"), required=False)

    def clean(self) -> None:
        length, day = self.cleaned_data.get("length"), self.cleaned_data.get("expires")
        if length == DAY and day is None and "expires" not in self.errors:
            self.add_error("expires", _("Choose the last day."))
        if length == YEAR and day is not None:
            text = _("You chose + 1 year. Empty this day, or choose the same last day for all.")
            self.add_error("expires", text)


class BulkExtendPermissionForm(BulkExtendForm):
    evidence = fields.EvidenceField()


class _EndTask(Task):
    template = "staff/expiring/end.html"
    form: ClassVar[type[EditConflictForm]]

    def form_context(self, request: HttpRequest, form: TaskForm, at: datetime) -> Context:
        return {"end": ends.end_of(form.record)}


class Extend(_EndTask):
    form = ExtendForm

    def initial(self, request: HttpRequest, record: ends.Ending, at: datetime) -> dict[str, Any]:
        until = ends.a_year_longer(record, at)
        day = timezone.localtime(until).date() if until else None
        return {"expires": day, **super().initial(request, record, at)}

    def form_context(self, request: HttpRequest, form: TaskForm, at: datetime) -> Context:
        context = super().form_context(request, form, at)
        until = ends.a_year_longer(form.record, at)
        if until is None:
            return context
        if is_over(context["end"], at):
            text = _("Proposed: {moment}, + 1 year from today, because the old end has passed.")
        else:
            text = _("Proposed: {moment}, + 1 year from the old end.")
        return context | {"proposal": text.format(moment=moment_text(until))}

    def preview(self, record: ends.Ending, data: dict[str, Any], at: datetime) -> Preview:
        end = ends.end_of(record)
        until = self._until(record, data, at)
        before = moment_text(end) if end else _("No end date")
        if data.get("length") == DAY and until is None:
            return Preview(before, refusal=_("Choose the last day."))
        if fault := ends.why_not_extended(record, until, at):
            return Preview(before, refusal=fault)
        assert until is not None  # noqa: S101 - without an end it is refused above
        return Preview(before, moment_text(until), note=self._note(record, data, at))

    def _note(self, record: ends.Ending, data: dict[str, Any], at: datetime) -> Text:
        is_ended = is_over(ends.end_of(record), at)
        if isinstance(record, GrantedPermission) and is_ended:
            return _("It has ended, so this grants the same again from now on.")
        if data.get("length", YEAR) != YEAR:
            return ""
        return _("+ 1 year from today") if is_ended else _("+ 1 year from the old end")

    def _until(self, record: ends.Ending, data: dict[str, Any], at: datetime) -> datetime | None:
        """The new last moment; None: no end, or of several no day was chosen yet."""
        is_year = data.get("length", YEAR) == YEAR
        return ends.a_year_longer(record, at) if is_year else data.get("expires")

    @transaction.atomic
    def perform(self, record: ends.Ending, data: Data, **call: Unpack[Call]) -> ends.Ending:
        if "length" in data:  # one of several
            until = self._until(record, data, call["at"])
        else:
            until = self.form.values_for_service(self.lock(record, call["by"]), data)["expires"]
        evidence = data.get("evidence")
        return extend(record=record, until=until, evidence=evidence, reason=data["reason"], **call)


class EndEarlier(_EndTask):
    form = EndEarlierForm

    @transaction.atomic
    def perform(self, record: ends.Ending, data: Data, **call: Unpack[Call]) -> ends.Ending:
        values = self.form.values_for_service(self.lock(record, call["by"]), data)
        return end_earlier(record=record, until=values.pop("expires"), **values, **call)


def _task(base: type[_EndTask], operation: Operation, end: str, **more: Any) -> type[_EndTask]:
    """The task for records whose end is this attribute; `more` is also in the form."""
    form = type(base.form.__name__, (base.form,), {"watched": {"expires": end}, **more})
    return task(base, operation, form=form, gives_access=operation is ends.EXTEND_SYSTEM_USER)


ExtendSystemUser = _task(Extend, ends.EXTEND_SYSTEM_USER, "expires_at")
EndSystemUserEarlier = _task(EndEarlier, ends.END_SYSTEM_USER_EARLIER, "expires_at")
ExtendIntermediary = _task(Extend, ends.EXTEND_INTERMEDIARY, "active_until")
EndIntermediaryEarlier = _task(EndEarlier, ends.END_INTERMEDIARY_EARLIER, "active_until")
_EVIDENCE = {"evidence": fields.EvidenceField()}
ExtendPermission = _task(Extend, ends.EXTEND_PERMISSION, "valid_until", **_EVIDENCE)
EndPermissionEarlier = _task(EndEarlier, ends.END_PERMISSION_EARLIER, "valid_until", **_EVIDENCE)
