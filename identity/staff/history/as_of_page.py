"""The page *As of a date*: who could act for a taxpayer, what a system user could do."""

from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _, gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.framework import fields
from identity.staff.framework.lists import key_in
from identity.staff.history.as_of_answers import Pairs, system_user_as_of, taxpayer_as_of
from identity.staff.history.report_form import record_of
from taxpayers.models import SystemUser, Taxpayer
from taxpayers.moments import end_of_day, to_utc
from taxpayers.standing.as_of import history_begins_at

_SUGGESTED = fields.CODE | {"data-suggest": reverse_lazy("admin:taxpayers_taxpayer_suggest")}


class AsOfForm(forms.Form):
    """A taxpayer or a system user, a day, and a time of it. `moment` is in the cleaned data."""

    about = forms.CharField(
        label=gettext_lazy("Taxpayer or system user"),
        help_text=gettext_lazy("TIN, TIN:ROB, or client ID."),
        max_length=fields.MAX_IDENTIFIER_LENGTH,
        widget=UnfoldAdminTextInputWidget(attrs=_SUGGESTED),
    )
    day = forms.DateField(label=gettext_lazy("Day"), widget=fields.browser_calendar())
    time = forms.TimeField(
        label=gettext_lazy("Time"),
        required=False,
        input_formats=["%H:%M", "%H:%M:%S"],
        help_text=gettext_lazy("Leave empty for the end of the day."),
        widget=fields.browser_calendar(forms.TimeInput, "time", "%H:%M"),
    )

    def clean_about(self) -> Taxpayer | SystemUser:
        return record_of(self.cleaned_data["about"].strip())

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = self.cleaned_data
        if "day" in data and "time" in data:
            try:
                data["moment"] = self._moment(timezone.now())
            except OverflowError:  # the first and the last day of the calendar
                invalid = self.fields["day"].error_messages["invalid"]
                raise ValidationError({"day": invalid}) from None
        return data

    def _moment(self, now: datetime) -> datetime:
        """The moment asked for; of the present day without a time: now."""
        day, time = self.cleaned_data["day"], self.cleaned_data["time"]
        if time is None and day == timezone.localdate(now):
            return now
        asked = end_of_day(day) if time is None else to_utc(datetime.combine(day, time))
        if asked > now:
            text = _(
                "Choose a moment of the past. For the future, use Simulate a login, on the list of"
                " logins."
            )
            raise ValidationError({"day": text})
        return asked


TITLE = gettext_lazy("As of a date")
MAX_PAGE = 2_000  # an intermediary with more taxpayers is asked about one by one


def as_of_context(request: HttpRequest) -> dict[str, Any]:
    """The form, and the answer if one was asked for."""
    is_asked = "day" in request.GET
    shown = {"about": request.GET.get("about", ""), "day": timezone.localdate()}
    form = AsOfForm(request.GET) if is_asked else AsOfForm(initial=shown)
    context = {"form": form, "title": TITLE}
    if not (is_asked and form.is_valid()):
        return context
    about, moment = form.cleaned_data["about"], form.cleaned_data["moment"]
    begins = history_begins_at()
    context |= {"is_asked": True, "moment": moment, "begins": begins}
    context |= {"about": about, "about_today": str(about)}  # `about` gets its values of then
    if begins is None or moment < begins:
        return context | {"is_unknown": True}
    context["when"] = urlencode({name: request.GET.get(name, "") for name in ("day", "time")})
    page = min(key_in(request.GET.get("p", "")) or 1, MAX_PAGE)
    if isinstance(about, SystemUser):
        kind, pairs, answer = "system_user", "represented", system_user_as_of(about, moment, page)
    else:
        kind, pairs, answer = "taxpayer", "acting", taxpayer_as_of(about, moment, page)
    return context | {kind: answer} | _pages(request, answer[pairs] if answer else None)


def _pages(request: HttpRequest, pairs: Pairs | None) -> dict[str, str]:
    """The links to the previous and the next page; empty where there is none."""
    if pairs is None:
        return {}
    asked = {name: request.GET.get(name, "") for name in ("about", "day", "time")}
    before, after = (f"?{urlencode(asked | {'p': pairs.page + step})}" for step in (-1, 1))
    has_next = pairs.has_more and pairs.page < MAX_PAGE
    return {
        "previous_url": before if pairs.page > 1 else "",
        "next_url": after if has_next else "",
    }
