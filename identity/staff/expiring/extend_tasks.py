"""Tasks for the end of a record: extend it, or set an earlier end. Two tasks on purpose.

Extending offers one year more: from the old end, or from today if that has passed.
"""

from datetime import datetime
from typing import Any, ClassVar, Unpack

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.display import moment_text
from identity.staff.expiring.extend_forms import (
    DAY,
    YEAR,
    EndEarlierForm,
    EndPermissionEarlierForm,
    ExtendForm,
    ExtendPermissionForm,
    watching,
)
from identity.staff.framework.edit_conflicts import EditConflictForm
from identity.staff.framework.forms import TaskForm
from identity.staff.framework.lists import Text
from identity.staff.framework.tasks import Call, Data, Preview, Task
from taxpayers.facts.validity import is_over
from taxpayers.models import GrantedPermission
from taxpayers.services import end_earlier, extend
from taxpayers.services.ends import (
    END_INTERMEDIARY_EARLIER,
    END_PERMISSION_EARLIER,
    END_SYSTEM_USER_EARLIER,
    EXTEND_INTERMEDIARY,
    EXTEND_PERMISSION,
    EXTEND_SYSTEM_USER,
    Ending,
    a_year_longer,
    end_of,
    why_not_extended,
)


class _EndTask(Task):
    template = "staff/expiring/end.html"
    form: ClassVar[type[EditConflictForm]]

    def form_context(
        self, request: HttpRequest, record: Ending, form: TaskForm, at: datetime
    ) -> dict[str, Any]:
        return {"end": end_of(record), "proposal": self.proposal(record, at)}

    def proposal(self, record: Ending, at: datetime) -> Text:
        """What the proposed day is, in words; empty if there is none."""
        return ""

    def success_message(self, result: Ending) -> str:
        end = end_of(result)
        if end is None:
            return _("{name} has no end date now.").format(name=result)
        return _("The last day of {name} is now {moment}.").format(
            name=result, moment=moment_text(end)
        )


class Extend(_EndTask):
    button_label = gettext_lazy("Extend")
    icon = "event_available"

    def initial(self, request: HttpRequest, record: Ending, at: datetime) -> dict[str, Any]:
        until = a_year_longer(record, at)
        day = timezone.localtime(until).date() if until else None
        return {"expires": day, **super().initial(request, record, at)}

    def proposal(self, record: Ending, at: datetime) -> Text:
        until = a_year_longer(record, at)
        if until is None:
            return ""
        if is_over(end_of(record), at):
            text = _("Proposed: {moment}, + 1 year from today, because the old end has passed.")
        else:
            text = _("Proposed: {moment}, + 1 year from the old end.")
        return text.format(moment=moment_text(until))

    def preview(self, record: Ending, data: dict[str, Any], at: datetime) -> Preview:
        end = end_of(record)
        until = self._until(record, data, at)
        before = moment_text(end) if end else _("No end date")
        if data.get("length") == DAY and until is None:
            return Preview(before, refusal=_("Choose the last day."))
        if fault := why_not_extended(record, until, at):
            return Preview(before, refusal=fault)
        assert until is not None  # noqa: S101 - without an end it is refused above
        return Preview(before, moment_text(until), note=self._note(record, data, at))

    def _note(self, record: Ending, data: dict[str, Any], at: datetime) -> Text:
        is_ended = is_over(end_of(record), at)
        if isinstance(record, GrantedPermission) and is_ended:
            return _("It has ended, so this grants the same again from now on.")
        if data.get("length", YEAR) != YEAR:
            return ""
        return _("+ 1 year from today") if is_ended else _("+ 1 year from the old end")

    def _until(self, record: Ending, data: dict[str, Any], at: datetime) -> datetime | None:
        """The new last moment; None: no end, or of several no day was chosen yet."""
        if data.get("length", YEAR) == YEAR:
            return a_year_longer(record, at)
        day: datetime | None = data.get("expires")
        return day

    @transaction.atomic
    def perform(self, record: Ending, data: Data, **call: Unpack[Call]) -> Ending:
        if "length" in data:  # one of several
            until = self._until(record, data, call["at"])
        else:
            until = self.form.values_for_service(record, data)["expires"]
        evidence = data.get("evidence")
        return extend(record=record, until=until, evidence=evidence, reason=data["reason"], **call)


class EndEarlier(_EndTask):
    icon = "event_busy"

    @transaction.atomic
    def perform(self, record: Ending, data: Data, **call: Unpack[Call]) -> Ending:
        values = self.form.values_for_service(record, data)
        given = {name: values[name] for name in ("evidence", "reason") if name in values}
        return end_earlier(record=record, until=values["expires"], **given, **call)


# --- Each kind of record ----------------------------------------------------------------------


class ExtendSystemUser(Extend):
    operation = EXTEND_SYSTEM_USER
    gives_access = True
    form = watching(ExtendForm, "expires_at")


class EndSystemUserEarlier(EndEarlier):
    operation = END_SYSTEM_USER_EARLIER
    form = watching(EndEarlierForm, "expires_at")


class ExtendIntermediary(Extend):
    operation = EXTEND_INTERMEDIARY
    form = watching(ExtendForm, "active_until")


class EndIntermediaryEarlier(EndEarlier):
    operation = END_INTERMEDIARY_EARLIER
    form = watching(EndEarlierForm, "active_until")


class ExtendPermission(Extend):
    operation = EXTEND_PERMISSION
    form = watching(ExtendPermissionForm, "valid_until")


class EndPermissionEarlier(EndEarlier):
    operation = END_PERMISSION_EARLIER
    form = watching(EndPermissionEarlierForm, "valid_until")
