"""The fields of forms: each has a label and one clear error; and what a text in one names."""

from collections.abc import Callable, Iterable
from datetime import date, datetime
from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.urls import reverse_lazy
from django.utils.translation import gettext as _, gettext_lazy
from unfold import widgets

from taxpayers.duties import MANAGEMENT_SCOPES
from taxpayers.evidence import on_paper
from taxpayers.identifiers import MalformedIdentifier, Notation, TaxpayerId
from taxpayers.models import MAX_LOGINS_PER_MINUTE, SystemUser
from taxpayers.moments import end_of_day, start_of_day
from taxpayers.services.named import find_taxpayer, role_of
from taxpayers.validation import (
    MAX_EVIDENCE_LENGTH,
    MAX_NAME_LENGTH,
    MAX_REASON_LENGTH,
    ServiceError,
    rule_of,
)

MAX_IDENTIFIER_LENGTH = 129  # TIN:ROB, as long as the columns are
CODE = {"autocomplete": "off", "spellcheck": "false"}  # attributes of a field that is no prose


class CodeField(forms.CharField):
    """An identifier or a number: no prose."""

    widget = widgets.UnfoldAdminTextInputWidget(attrs=CODE)


class SelectField(forms.ChoiceField):
    widget = widgets.UnfoldAdminSelectWidget


class RadioField(forms.ChoiceField):
    widget = widgets.UnfoldAdminRadioSelectWidget


NameField = partial(
    forms.CharField,
    label=gettext_lazy("Name"),
    max_length=MAX_NAME_LENGTH,
    widget=widgets.UnfoldAdminTextInputWidget,
)


class ReasonField(forms.CharField):
    """Why a change is made; `ready`: usual answers, which the browser offers without a script."""

    def __init__(self, *ready: Any, required: bool = True) -> None:
        offered = {"list": "ready_answers"} if ready else {}
        super().__init__(
            label=gettext_lazy("Reason"),
            help_text=gettext_lazy("Saved in the history with your name."),
            max_length=MAX_REASON_LENGTH,
            required=required,
            widget=widgets.UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"} | offered),
        )
        self.ready = ready


CredentialReasonField = partial(  # why one is issued or replaced
    ReasonField,
    gettext_lazy("A new ERP system"),
    gettext_lazy("The present one ends soon"),
    gettext_lazy("Others may know the present one"),
    gettext_lazy("The present one was lost"),
    gettext_lazy("Its operator asked for it"),
)


class EvidenceField(CodeField):
    """The number of the paper form by which a taxpayer has decided; becomes Evidence."""

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Number of the paper form"),
            help_text=gettext_lazy("By which the taxpayer has decided this."),
            max_length=MAX_EVIDENCE_LENGTH,
            required=False,
        )

    def clean(self, value: Any) -> Any:
        number = super().clean(value)
        return on_paper(number) if number else None


def browser_calendar(
    widget: type[forms.DateInput | forms.TimeInput | forms.DateTimeInput] = forms.DateInput,
    kind: str = "date",  # the type of the field in HTML
    form: str = "%Y-%m-%d",  # how it writes a value
) -> forms.Widget:
    """The calendar or clock of the browser, which needs no script and works with the keyboard."""
    look = widgets.UnfoldAdminTextInputWidget().attrs["class"]
    return widget(format=form, attrs={"type": kind, "class": look})


class DayField(forms.DateField):
    """A day, read as one of its moments."""

    def __init__(self, moment_of: Callable[[date], datetime], **kwargs: Any) -> None:
        super().__init__(**kwargs | {"widget": browser_calendar()})
        self.moment_of = moment_of

    def clean(self, value: Any) -> Any:
        day = super().clean(value)
        try:
            return None if day is None else self.moment_of(day)
        except OverflowError:  # the first and the last day of the calendar
            raise ValidationError(self.error_messages["invalid"], code="invalid") from None


FirstDayField = partial(DayField, start_of_day)
LastDayField = partial(DayField, end_of_day)
EndField = partial(
    LastDayField, required=False, help_text=gettext_lazy("Leave empty for no end date.")
)
LifetimeField = partial(
    LastDayField,
    required=False,
    help_text=gettext_lazy(
        "Leave empty to use the standard lifetime of this service, usually one year."
    ),
)


class TaxpayerField(forms.CharField):
    """A taxpayer by its TIN or TIN:ROB, with suggestions while typing."""

    suggests = "taxpayer"
    title = gettext_lazy("Taxpayer")

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("label", self.title)
        kwargs.setdefault("help_text", gettext_lazy("TIN, TIN:ROB, or any part of the name."))
        suggest_url = reverse_lazy(f"admin:taxpayers_{self.suggests}_suggest")
        suggests = {"data-suggest": suggest_url, "data-suggest-title": gettext_lazy("Suggestions")}
        widget = widgets.UnfoldAdminTextInputWidget(attrs=CODE | suggests)
        super().__init__(widget=widget, max_length=MAX_IDENTIFIER_LENGTH, **kwargs)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        return or_invalid(find_taxpayer, parsed_identifier(text))


class IntermediaryField(TaxpayerField):
    suggests = "intermediary"
    title = gettext_lazy("Intermediary")

    def clean(self, value: Any) -> Any:
        taxpayer = super().clean(value)
        return None if taxpayer is None else or_invalid(role_of, taxpayer)


class LastCharactersField(CodeField):
    """Asks for the end of what is shown: another one may be meant. The form sets `expected`."""

    expected = ""

    def clean(self, value: Any) -> str:
        end: str = super().clean(value).lstrip("…")
        if end != self.expected:
            text = _("These are not its last characters. Check that it is the right one.")
            raise ValidationError(text)
        return end


class CheckboxesField(forms.MultipleChoiceField):
    """Some of the choices: as a list, or, as records and addresses have them, between blanks."""

    widget = widgets.UnfoldAdminCheckboxSelectMultipleWidget

    def prepare_value(self, value: Any) -> Any:
        return value.split() if isinstance(value, str) else value


LimitField = partial(
    forms.IntegerField,
    label=gettext_lazy("Logins per minute"),
    help_text=gettext_lazy("0: unlimited, still counted."),
    min_value=0,
    max_value=MAX_LOGINS_PER_MINUTE,
    widget=widgets.UnfoldAdminIntegerFieldWidget,
)


def scope_choices() -> Iterable[tuple[str, str]]:
    """The scopes that staff may give, each with its description."""
    return [
        (name, f"{name} — {scope['description']}")
        for name, scope in settings.SCOPES.items()
        if name not in MANAGEMENT_SCOPES
    ]


def find_system_user(client_id: str) -> SystemUser:
    """The system user, with its taxpayer. Raises ValidationError if there is none."""
    rows = SystemUser.objects.select_related("taxpayer")
    row = rows.filter(client_id=client_id).first()
    if row is None:
        raise ValidationError(_("There is no system user with this client ID."))
    return row


def or_invalid(find: Callable[[Any], Any], named: Any) -> Any:
    """What a service finds. Raises ValidationError with its text."""
    try:
        return find(named)
    except ServiceError as fault:
        raise ValidationError(str(fault)) from None


def parsed_identifier(text: str) -> TaxpayerId:
    """The identifier in the text. Raises ValidationError, in the language of the reader."""
    try:
        return Notation(tin=settings.TIN_PATTERN, rob=settings.ROB_PATTERN).parse(text)
    except MalformedIdentifier as fault:
        raise ValidationError(
            _("{given} is not a valid identifier: {rule}. Write TIN or TIN:ROB.").format(
                given=repr(text[:30]), rule=rule_of(fault)
            )
        ) from None
