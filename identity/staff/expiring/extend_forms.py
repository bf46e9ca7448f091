"""The forms of the tasks that change an end: of one record, and of several."""

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget

from identity.staff.framework.bulk_tasks import BulkForm
from identity.staff.framework.edit_conflicts import EditConflictForm
from identity.staff.framework.forms import EvidenceField, LastDayField, ReasonField

YEAR, DAY = "year", "day"


class ExtendForm(EditConflictForm):
    expires = LastDayField(
        label=gettext_lazy("New last day"),
        required=False,
        help_text=gettext_lazy("Leave empty for no end date."),
    )
    reason = ReasonField()


class EndEarlierForm(EditConflictForm):
    expires = LastDayField(label=gettext_lazy("New last day"))
    reason = ReasonField()


class BulkExtendForm(BulkForm):
    """One year more for each, or the same last day for all."""

    decides = ("length", "expires")

    length = forms.ChoiceField(
        label=gettext_lazy("How long"),
        choices=[
            (
                YEAR,
                gettext_lazy("+ 1 year for each: from its old end, or from today if it has passed"),
            ),
            (DAY, gettext_lazy("The same last day for all")),
        ],
        initial=YEAR,
        widget=UnfoldAdminRadioSelectWidget,
    )
    expires = LastDayField(label=gettext_lazy("Last day for all"), required=False)
    reason = ReasonField()

    def clean(self) -> None:
        length, day = self.cleaned_data.get("length"), self.cleaned_data.get("expires")
        if length == DAY and day is None and "expires" not in self.errors:
            self.add_error("expires", _("Choose the last day."))
        if length == YEAR and day is not None:
            text = _("You chose + 1 year. Empty this day, or choose the same last day for all.")
            self.add_error("expires", text)


class ExtendPermissionForm(ExtendForm):
    evidence = EvidenceField()


class EndPermissionEarlierForm(EndEarlierForm):
    evidence = EvidenceField()


class BulkExtendPermissionForm(BulkExtendForm):
    evidence = EvidenceField()


def watching(form: type[EditConflictForm], attribute: str) -> type[EditConflictForm]:
    """The form for records whose end is this attribute."""
    return type(form.__name__, (form,), {"watched": {"expires": attribute}})
