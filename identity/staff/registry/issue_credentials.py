"""The task that issues credentials: a new system user with its first secret (contract 3)."""

import re
from typing import Any, Unpack

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget

from identity.staff.framework.forms import (
    CODE,
    CheckboxesField,
    IntermediaryField,
    LastDayField,
    LimitField,
    NameField,
    TaskForm,
    TaxpayerField,
    parsed_identifier,
    scope_choices,
)
from identity.staff.framework.secret_once import SecretOnceTask
from identity.staff.framework.tasks import Call, Data
from identity.staff.registry.permission_tasks import code_choices
from taxpayers.models import DEFAULT_LOGINS_PER_MINUTE, DEFAULT_SCOPE
from taxpayers.services import IssuedSecret, ServiceError, register_system_user
from taxpayers.services.limits.source_networks import validate_networks
from taxpayers.services.system_users import ISSUE_CREDENTIALS

_SEPARATOR = re.compile(r"[\s,;]+")
_LONGEST = 100_000


class _ListField(forms.CharField):
    """Several values, one in each line; a blank or a comma between them is understood, too."""

    def __init__(self, **kwargs: Any) -> None:
        attrs = CODE | {"rows": 3}
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


class IssueCredentialsForm(TaskForm):
    """Only an intermediary can be limited: the form has the fields if it is opened for one."""

    taxpayer = TaxpayerField(
        help_text=gettext_lazy(
            "TIN, TIN:ROB, or any part of the name. To limit what a system user of an intermediary"
            " may do for others, begin on the page of the taxpayer."
        )
    )
    name = NameField(
        label=gettext_lazy("Name of the ERP system"),
        help_text=gettext_lazy("A name that you and the taxpayer will recognise."),
    )
    scopes = CheckboxesField(
        label=gettext_lazy("Scopes"), choices=scope_choices, initial=[DEFAULT_SCOPE]
    )
    logins_per_minute = LimitField(initial=DEFAULT_LOGINS_PER_MINUTE)
    expires = LastDayField(
        label=gettext_lazy("Last day of the system user"),
        required=False,
        help_text=gettext_lazy("Leave empty for no end date."),
    )
    secret_expires = LastDayField(
        label=gettext_lazy("Last day of the secret"),
        required=False,
        help_text=gettext_lazy(
            "Leave empty to use the standard lifetime of this service, usually one year."
        ),
    )
    permissions = AllowedPermissionsField()
    taxpayers = AllowedTaxpayersField()
    networks = NetworksField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        given = self.data if self.is_bound else self.initial
        has_limit = given.get("permissions") or given.get("taxpayers")
        if not has_limit and not _names_intermediary(given.get("taxpayer", "")):
            del self.fields["permissions"], self.fields["taxpayers"]


class IssueCredentials(SecretOnceTask):
    operation = ISSUE_CREDENTIALS
    icon = "person_add"
    variant = "primary"
    form = IssueCredentialsForm
    is_for_record = False

    def perform(self, record: None, data: Data, **call: Unpack[Call]) -> IssuedSecret:
        # Submitted twice, the second is refused: names of system users are unique for a taxpayer.
        return register_system_user(
            taxpayer=data["taxpayer"],
            name=data["name"],
            scopes=data["scopes"],
            expires_at=data["expires"],
            secret_expires_at=data["secret_expires"],
            logins_per_minute=data["logins_per_minute"],
            allowed_permissions=data.get("permissions", ()),
            allowed_taxpayers=[parsed_identifier(text) for text in data.get("taxpayers", ())],
            allowed_networks=data["networks"],
            **call,
        )


def _names_intermediary(text: str) -> bool:
    try:
        return IntermediaryField(required=False).clean(text) is not None
    except ValidationError:
        return False
