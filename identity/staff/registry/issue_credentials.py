"""The task that issues credentials: a new system user with its first secret (contract 3)."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy

from identity.staff.framework.forms import (
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
from identity.staff.registry.limit_fields import (
    AllowedPermissionsField,
    AllowedTaxpayersField,
    NetworksField,
)
from taxpayers.models import DEFAULT_LOGINS_PER_MINUTE, DEFAULT_SCOPE
from taxpayers.services import Author, IssuedSecret, register_system_user
from taxpayers.services.system_users import ISSUE_CREDENTIALS


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

    def perform(
        self, record: None, data: dict[str, Any], *, by: Author, at: datetime
    ) -> IssuedSecret:
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
            by=by,
            at=at,
        )


def _names_intermediary(text: str) -> bool:
    try:
        return IntermediaryField(required=False).clean(text) is not None
    except ValidationError:
        return False
