"""The tasks that make system users: one with its first secret, or many of a file (contract 3)."""

import re
from functools import partial
from typing import Any, Unpack

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _, gettext_lazy, ngettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldBooleanWidget

from identity.staff.framework import fields
from identity.staff.framework.secret_once import SecretOnceTask
from identity.staff.framework.tasks import Call, Data
from identity.staff.imports.import_task import ImportTask
from identity.staff.system_users.login_methods import PublicTextField, TextOrFileForm
from taxpayers.credential_kind import CredentialKind
from taxpayers.models import DEFAULT_LOGINS_PER_MINUTE, DEFAULT_SCOPE, SystemUser
from taxpayers.services import (
    IssuedSecret,
    register_system_user,
    register_system_user_without_secret,
)
from taxpayers.services.live_credentials import validate_networks
from taxpayers.services.login_method.registration import why_not_taken
from taxpayers.services.system_users import ISSUE_CREDENTIALS

_SEPARATOR = re.compile(r"[\s,;]+")
_LONGEST = 100_000


class ListField(forms.CharField):
    """Several values, one in each line; a blank or a comma between them is understood, too."""

    widget = UnfoldAdminTextareaWidget(attrs=fields.CODE | {"rows": 3})

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, max_length=_LONGEST, **kwargs)

    def clean(self, value: Any) -> list[str]:
        return [part for part in _SEPARATOR.split(super().clean(value)) if part]


OnlyOnBehalfField = partial(
    forms.BooleanField,
    label=gettext_lazy("Only on behalf of others"),
    required=False,
    help_text=gettext_lazy(
        "A login without the header onbehalfof is refused. Recommended for every system of an"
        " intermediary: if a program forgets the header, it does not get a token for the"
        " intermediary itself."
    ),
    widget=UnfoldBooleanWidget,
)


class NetworksField(ListField):
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
        networks: str = fields.or_invalid(validate_networks, super().clean(value))
        return networks.split()


def _kinds() -> list[tuple[str, Any]]:
    """What a new system user can log in with: certificates, where the service takes any."""
    kinds: list[tuple[str, Any]] = [
        (CredentialKind.SECRET, gettext_lazy("A secret, which is shown once")),
        (CredentialKind.KEY, gettext_lazy("A private key: its public key is registered")),
    ]
    if not why_not_taken():
        title = gettext_lazy("A certificate (PEM): its subject is registered")
        kinds.append((CredentialKind.CERTIFICATE, title))
    return kinds


class IssueCredentialsForm(TextOrFileForm):
    """What every system user has; that of an intermediary can be limited on its page."""

    taxpayer = fields.TaxpayerField()
    name = fields.NameField(
        label=gettext_lazy("Name of the ERP system"),
        help_text=gettext_lazy("A name that you and the taxpayer will recognise."),
    )
    kind = fields.RadioField(
        label=gettext_lazy("Logs in with"),
        choices=_kinds,
        initial=CredentialKind.SECRET,
        required=False,
    )
    text = PublicTextField(
        label=gettext_lazy("Public key or certificate"),
        help_text=gettext_lazy(
            "Leave empty for a secret. Else as the operator of the ERP system sent it; never ask"
            " for the private key."
        ),
    )
    scopes = fields.CheckboxesField(
        label=gettext_lazy("Scopes"), choices=fields.scope_choices, initial=[DEFAULT_SCOPE]
    )
    logins_per_minute = fields.LimitField(initial=DEFAULT_LOGINS_PER_MINUTE)
    expires = fields.EndField(label=gettext_lazy("Last day of the system user"))
    secret_expires = fields.LifetimeField(
        label=gettext_lazy("Last day of the secret, key or certificate")
    )
    only_on_behalf = OnlyOnBehalfField(initial=True)
    networks = NetworksField()
    reason = fields.CredentialReasonField()
    text_field = "text"
    field_order = ("taxpayer", "name", "only_on_behalf", "kind", "text", "file", "scopes")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        given = self.data if self.is_bound else self.initial
        if not given.get("only_on_behalf") and not _names_intermediary(given.get("taxpayer", "")):
            del self.fields["only_on_behalf"]

    def is_needed(self) -> bool:
        return self.cleaned_data.get("kind") not in ("", CredentialKind.SECRET)


class ImportSystemUsers(ImportTask):
    kind_name = "system_users"
    column_notes = gettext_lazy(
        "taxpayer is TIN or TIN:ROB. scopes are separated by blanks. Empty scopes or"
        " logins_per_minute mean the standard values. expires_at is the last day; empty means no"
        " end date."
    )
    example = (
        ("C2581234010", "AutoCount Wangsa", "", "", ""),
        ("C2581234080:202301045678", "SQL Account", "InvoicingAPI", "60", "2028-12-31"),
    )
    counted = ngettext_lazy("{count} system user", "{count} system users", "count")


class IssueCredentials(SecretOnceTask):
    operation = ISSUE_CREDENTIALS
    variant = "primary"
    form = IssueCredentialsForm

    def perform(self, record: None, data: Data, **call: Unpack[Call]) -> IssuedSecret | SystemUser:
        # Submitted twice, the second is refused: names of system users are unique for a taxpayer.
        given: dict[str, Any] = {
            **{name: data[name] for name in ("taxpayer", "name", "scopes", "logins_per_minute")},
            "only_on_behalf": data.get("only_on_behalf", False),
            "expires_at": data["expires"],
            "credentials_expire_at": data["secret_expires"],
            "allowed_networks": data["networks"],
            "reason": data["reason"],
            **call,
        }
        match data["kind"]:
            case CredentialKind.KEY:
                return register_system_user_without_secret(keys=data["text"], **given)
            case CredentialKind.CERTIFICATE:
                return register_system_user_without_secret(certificate=data["text"], **given)
            case _secret:
                return register_system_user(**given)

    def success_response(self, request: HttpRequest, result: Any) -> HttpResponse:
        if isinstance(result, SystemUser):
            text = _("{name} is registered. Its client ID is {client_id}.")
            messages.success(request, text.format(name=result.name, client_id=result.client_id))
            return HttpResponseRedirect(self.admin.record_url(result))
        return super().success_response(request, result)


def _names_intermediary(text: str) -> bool:
    try:
        return fields.IntermediaryField(required=False).clean(text) is not None
    except ValidationError:
        return False
