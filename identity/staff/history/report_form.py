"""Which changes the report shows: of a period, by a person, of one action, about a record."""

from datetime import date, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import formats, timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.actions import TEXTS
from identity.staff.framework import fields
from identity.staff.framework.related import ORDER, changes_about, removals_of
from taxpayers.models import Change, SystemUser, Taxpayer
from taxpayers.services.named import find_taxpayer

PARAMETERS = ("since", "until", "by", "action", "about")


class ReportForm(forms.Form):
    since = fields.FirstDayField(label=gettext_lazy("From"), required=False)
    until = fields.LastDayField(label=gettext_lazy("Until"), required=False)
    by = fields.CodeField(
        label=gettext_lazy("Who"),
        required=False,
        max_length=150,
        help_text=gettext_lazy("User name, exactly as in the history."),
    )
    action = fields.SelectField(
        label=gettext_lazy("Action"),
        required=False,
        choices=lambda: [("", _("All")), *TEXTS.items()],
    )
    about = fields.CodeField(
        label=gettext_lazy("About"),
        required=False,
        max_length=fields.MAX_IDENTIFIER_LENGTH,
        help_text=gettext_lazy("TIN, TIN:ROB, client ID, or the user name of an account."),
    )

    def clean_about(self) -> Taxpayer | SystemUser | str | None:
        """A text is the beginning of what the history calls another record, or one removed."""
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

    @property
    def removals(self) -> list[Change]:
        """Each time that the taxpayer that is asked about was removed."""
        try:
            return [*removals_of(fields.parsed_identifier(self.data.get("about", "")))]
        except ValidationError:
            return []

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

    def in_words(self) -> str:
        """By what the changes are chosen; empty for all."""
        texts = {name: self.data.get(name, "") for name in PARAMETERS}
        for name in ("since", "until"):
            if day := self.cleaned_data[name]:
                texts[name] = formats.date_format(timezone.localtime(day), "j M Y")
        texts["action"] = str(TEXTS.get(texts["action"], ""))
        return "; ".join(f"{self[name].label}: {text}" for name, text in texts.items() if text)


def record_of(text: str) -> Taxpayer | SystemUser:
    """The taxpayer or system user that this text names. Raises ValidationError."""
    if text.startswith("ci_"):
        return fields.find_system_user(text)
    found: Taxpayer = fields.or_invalid(find_taxpayer, fields.parsed_identifier(text))
    return found


def preset_links(request: HttpRequest) -> list[tuple[Any, str]]:
    """Links to the report of usual periods; what else was chosen stays."""
    first = timezone.localdate().replace(day=1)
    last_month = first - timedelta(days=1)
    chosen: dict[str, dict[str, date | int | str]] = {
        _("This month"): {"since": first, "until": ""},
        _("Last month"): {"since": last_month.replace(day=1), "until": last_month},
        _("This year"): {"since": first.replace(month=1), "until": ""},
    }
    return [(title, "?" + query_of(request, **period)) for title, period in chosen.items()]


def query_of(request: HttpRequest, **changed: date | int | str) -> str:
    """The query string of the report as it is shown, with these parameters changed."""
    present = {name: request.GET.get(name, "") for name in PARAMETERS} | changed
    return urlencode({name: str(value) for name, value in present.items() if value})
