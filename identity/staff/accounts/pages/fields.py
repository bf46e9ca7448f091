"""Fields of the forms for staff accounts."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextInputWidget

from identity.staff.accounts.changes.accounts import MAX_NAME_LENGTH
from identity.staff.accounts.roles import ROLES


class PersonField(forms.CharField):
    """The name of a person, in one line."""

    widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Name"),
            max_length=MAX_NAME_LENGTH,
            help_text=gettext_lazy("The full name of the person."),
        )


class _EveryRole(UnfoldAdminRadioSelectWidget):
    """Reads every role that was sent: two of them are refused, not reduced to the last one."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        return " + ".join(data.getlist(name)) if hasattr(data, "getlist") else data.get(name)


def _choices() -> Iterator[tuple[str, SafeString]]:
    for name, role in ROLES.items():
        yield name, format_html("<strong>{}</strong><br>{}", role.title, role.duties)


class RoleField(forms.ChoiceField):
    """One role, each with its duties."""

    widget = _EveryRole

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Role"),
            choices=_choices,
            error_messages={
                "required": gettext_lazy("Choose a role."),
                "invalid_choice": gettext_lazy(
                    "Choose one of these roles. No one can be registrar and security officer at"
                    " once: with both, one person could let in a client that does not exist."
                ),
            },
        )
