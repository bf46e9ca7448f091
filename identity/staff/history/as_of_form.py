"""Which record, and which moment of the past, the page *As of a date* asks about."""

from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from identity.staff.framework.forms import (
    MAX_IDENTIFIER_LENGTH,
    browser_calendar,
    day_calendar,
)
from identity.staff.history.report_form import record_of
from taxpayers.models import SystemUser, Taxpayer
from taxpayers.moments import end_of_day, to_utc

_SUGGESTED = {
    "autocomplete": "off",
    "spellcheck": "false",
    "data-suggest": reverse_lazy("admin:taxpayers_taxpayer_suggest"),
}


class AsOfForm(forms.Form):
    """A taxpayer or a system user, a day, and a time of it. `moment` is in the cleaned data."""

    about = forms.CharField(
        label=gettext_lazy("Taxpayer or system user"),
        help_text=gettext_lazy("TIN, TIN:ROB, or client ID."),
        max_length=MAX_IDENTIFIER_LENGTH,
        widget=UnfoldAdminTextInputWidget(attrs=_SUGGESTED),
    )
    day = forms.DateField(label=gettext_lazy("Day"), widget=day_calendar())
    time = forms.TimeField(
        label=gettext_lazy("Time"),
        required=False,
        input_formats=["%H:%M", "%H:%M:%S"],
        help_text=gettext_lazy("Leave empty for the end of the day."),
        widget=browser_calendar(forms.TimeInput, "time", "%H:%M"),
    )

    def clean_about(self) -> Taxpayer | SystemUser:
        return record_of(self.cleaned_data["about"].strip())

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = self.cleaned_data
        if "day" in data and "time" in data:
            try:
                data["moment"] = self._moment(timezone.now())
            except OverflowError:  # the first and the last day of the calendar
                raise ValidationError(
                    {"day": self.fields["day"].error_messages["invalid"]}
                ) from None
        return data

    def _moment(self, now: datetime) -> datetime:
        """The moment asked for; of the present day without a time: now."""
        day, time = self.cleaned_data["day"], self.cleaned_data["time"]
        if time is None and day == timezone.localdate(now):
            return now
        asked = end_of_day(day) if time is None else to_utc(datetime.combine(day, time))
        if asked > now:
            raise ValidationError(
                {
                    "day": _(
                        "Choose a moment of the past. For the future, use Simulate a login, on the"
                        " list of logins."
                    )
                }
            )
        return asked
