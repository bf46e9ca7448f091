"""Which changes the report shows: of a period, by a person, of one action, about a record."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from identity.staff.actions import TEXTS
from identity.staff.framework.forms import (
    CODE,
    MAX_IDENTIFIER_LENGTH,
    FirstDayField,
    LastDayField,
    find_system_user,
    or_invalid,
    parsed_identifier,
)
from identity.staff.history.grouping import ORDER
from identity.staff.history.related import changes_about
from taxpayers.models import Change, SystemUser, Taxpayer
from taxpayers.services.named import find_taxpayer

PARAMETERS = ("since", "until", "by", "action", "about")


class ReportForm(forms.Form):
    """Every field is optional: together they narrow the report down."""

    since = FirstDayField(label=gettext_lazy("From"), required=False)
    until = LastDayField(label=gettext_lazy("Until"), required=False)
    by = forms.CharField(
        label=gettext_lazy("Who"),
        required=False,
        max_length=150,
        help_text=gettext_lazy("User name, exactly as in the history."),
        widget=UnfoldAdminTextInputWidget(attrs=CODE),
    )
    action = forms.ChoiceField(
        label=gettext_lazy("Action"),
        required=False,
        choices=lambda: [("", _("All")), *TEXTS.items()],
        widget=UnfoldAdminSelectWidget,
    )
    about = forms.CharField(
        label=gettext_lazy("About"),
        required=False,
        max_length=MAX_IDENTIFIER_LENGTH,
        help_text=gettext_lazy("TIN, TIN:ROB, client ID, or the user name of an account."),
        widget=UnfoldAdminTextInputWidget(attrs=CODE),
    )

    def clean_about(self) -> Taxpayer | SystemUser | str | None:
        """A text is the beginning of what the history calls another kind of record."""
        text: str = self.cleaned_data["about"].strip()
        if not text:
            return None
        try:
            return record_of(text)
        except ValidationError:
            if Change.objects.filter(label__startswith=text).exists():
                return text
            raise

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = self.cleaned_data
        since, until = data.get("since"), data.get("until")
        if since and until and until < since:
            raise ValidationError({"until": _("This day is before the first one.")})
        return data

    def changes(self) -> "QuerySet[Change]":
        """The changes that are asked for, those of one task next to each other."""
        data = self.cleaned_data
        about = data["about"]
        rows = Change.objects.order_by(*ORDER)
        if isinstance(about, str):
            rows = rows.filter(label__startswith=about)
        elif about:
            rows = changes_about(about)
        conditions = {
            "at__gte": data["since"],
            "at__lte": data["until"],
            "by": data["by"],
            "action": data["action"],
        }
        return rows.filter(**{name: value for name, value in conditions.items() if value})


def record_of(text: str) -> Taxpayer | SystemUser:
    """The taxpayer or system user that this text names. Raises ValidationError."""
    if text.startswith("ci_"):
        return find_system_user(text)
    found: Taxpayer = or_invalid(find_taxpayer, parsed_identifier(text))
    return found


def preset_links(request: HttpRequest) -> list[tuple[Any, str]]:
    """Links to the report of usual periods; what else was chosen stays."""
    today = timezone.localdate()
    chosen = {
        _("This month"): month(today),
        _("Last month"): month(today, back=1),
        _("This quarter"): quarter(today),
        _("Last quarter"): quarter(today, back=1),
        _("This year"): year(today),
    }
    return [
        (title, "?" + query_of(request, since=period.first, until=period.last))
        for title, period in chosen.items()
    ]


_LIST_PERIODS = {"1h": 0, "1": 1, "7": 7, "30": 30}  # in days


def query_of_list(request: HttpRequest) -> str:
    """The query string of the report for an address of the former list."""
    asked: dict[str, date | str] = {"action": request.GET.get("action", "")}
    if term := request.GET.get("q", "").strip():
        asked["about" if ReportForm({"about": term}).is_valid() else "by"] = term
    days = _LIST_PERIODS.get(request.GET.get("period", ""))
    if days is not None:
        asked["since"] = timezone.localdate() - timedelta(days=days)
    return query_of(request, **asked)


def query_of(request: HttpRequest, **changed: date | int | str) -> str:
    """The query string of the report as it is shown, with these parameters changed."""
    present = {name: request.GET.get(name, "") for name in PARAMETERS} | changed
    return urlencode({name: str(value) for name, value in present.items() if value})


_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Period:
    """From the first day to the last one, both included."""

    first: date
    last: date


def month(today: date, back: int = 0) -> Period:
    """The month of this day, or an earlier one, `back` months before."""
    return _months(today.year, today.month - back, 1)


def quarter(today: date, back: int = 0) -> Period:
    """The quarter of this day, or an earlier one."""
    begins = (today.month - 1) // 3 * 3 + 1
    return _months(today.year, begins - 3 * back, 3)


def year(today: date) -> Period:
    """The calendar year of this day."""
    return _months(today.year, 1, 12)


def _months(year: int, month: int, count: int) -> Period:
    return Period(_first(year, month), _first(year, month + count) - _DAY)


def _first(year: int, month: int) -> date:
    """The first day of the month; months before 1 and after 12 are those of other years."""
    years, month = divmod(month - 1, 12)
    return date(year + years, month + 1, 1)
