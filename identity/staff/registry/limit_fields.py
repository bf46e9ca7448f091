"""The form fields that limit credentials: for which taxpayers, and from which networks."""

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget

from identity.staff.framework.forms import CheckboxesField, parsed_identifier
from identity.staff.registry.permission_tasks import code_choices
from taxpayers.services import ServiceError
from taxpayers.services.limits.source_networks import validate_networks

_SEPARATOR = re.compile(r"[\s,;]+")
_LONGEST = 100_000


class _ListField(forms.CharField):
    """Several values, one in each line; a blank or a comma between them is understood, too."""

    def __init__(self, **kwargs: Any) -> None:
        attrs = {"autocomplete": "off", "spellcheck": "false", "rows": 3}
        widget = UnfoldAdminTextareaWidget(attrs=attrs)
        super().__init__(widget=widget, required=False, max_length=_LONGEST, **kwargs)

    def values(self, value: Any) -> list[str]:
        text = super().clean(value)
        return [part for part in _SEPARATOR.split(text) if part]


class AllowedPermissionsField(CheckboxesField):
    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Permissions on behalf of others"),
            choices=code_choices,
            required=False,
            help_text=gettext_lazy(
                "It gets these at most, and only what the taxpayer has granted. Select none to"
                " allow all that is granted."
            ),
        )


class AllowedTaxpayersField(_ListField):
    """Identifiers, as they are stored. Who is not registered is found by the service."""

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Taxpayers that it may act for"),
            help_text=gettext_lazy(
                "TIN or TIN:ROB, one in each line. Leave empty to allow every taxpayer that has"
                " granted a permission."
            ),
        )

    def clean(self, value: Any) -> list[str]:
        return sorted({str(parsed_identifier(text)) for text in self.values(value)})


class NetworksField(_ListField):
    """Networks in CIDR notation, as they are stored."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            label=gettext_lazy("Allowed networks"),
            help_text=gettext_lazy(
                "From where logins may come, one network in each line: 203.0.113.0/24,"
                " 2001:db8::/32, or a single address. Leave empty to allow any address."
            ),
            **kwargs,
        )

    def clean(self, value: Any) -> list[str]:
        try:
            return validate_networks(self.values(value)).split()
        except ServiceError as error:
            raise ValidationError(str(error)) from None
