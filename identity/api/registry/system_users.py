"""`/system-users`: the clients. Those of the management API itself only operators change."""

from typing import Any

from django.db.models import Model, Prefetch, Q, QuerySet

from identity.api.framework import fields, kinds
from identity.api.framework.query import ByName
from identity.api.registry import system_user_records as records
from identity.api.registry.taxpayers import of_taxpayer
from taxpayers import services
from taxpayers.certificates import MAX_TEXT_LENGTH
from taxpayers.duties import Duty
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import MAX_LOGINS_PER_MINUTE, Credential, SystemUser
from taxpayers.services import system_users
from taxpayers.services.acting_limits import LIMIT_SYSTEM_USER
from taxpayers.services.credential_changes import ROTATE_SECRET
from taxpayers.services.ends import END_SYSTEM_USER_EARLIER, EXTEND_SYSTEM_USER
from taxpayers.services.login_method import change
from taxpayers.services.login_method.registration import (
    REGISTER_CLIENT_CERTIFICATE,
    REGISTER_CLIENT_KEY,
)

_BINDINGS = {"none": TokenBinding.BEARER, "dpop": TokenBinding.DPOP, "tls": TokenBinding.TLS}


class SystemUserRowBody(fields.Body):
    """A system user without a secret: issue one for it, by rotate-secret."""

    taxpayer = fields.Taxpayer()
    name = fields.Text()
    scopes = fields.Texts(required=False, help_text="Left out: the default scope.")
    logins_per_minute = fields.Whole(
        required=False, min_value=0, max_value=MAX_LOGINS_PER_MINUTE, help_text="0: unlimited."
    )
    expires_at = fields.End(
        required=False, allow_null=True, help_text="Its last day. null: no end."
    )


class NewSystemUserBody(SystemUserRowBody):
    """What is needed to register a system user."""

    credentials_expire_at = fields.End(
        required=False, help_text="The last day of its secret or keys."
    )
    allowed_permissions = fields.Texts(required=False)
    allowed_taxpayers = fields.Taxpayers(required=False)
    only_on_behalf = fields.Truth(
        required=False, help_text="true: each login must name another taxpayer in onbehalfof."
    )
    allowed_networks = fields.Texts(required=False)
    keys = fields.PublicKeys(required=False)
    reason = fields.Reason()


class ChangeSystemUserBody(fields.ReasonBody):
    """What can be changed of a system user; what is left out stays as it is."""

    name = fields.Text(required=False)
    scopes = fields.Texts(required=False)
    logins_per_minute = fields.Whole(required=False, min_value=0, max_value=MAX_LOGINS_PER_MINUTE)
    return_addresses = fields.Texts(required=False)


class LimitsBody(fields.ReasonBody):
    """What it may do for other taxpayers at most; both empty: whatever they grant.

    only_on_behalf: it gets no token for its own taxpayer; left out: as it is.
    """

    allowed_permissions = fields.Texts(source="permissions")
    allowed_taxpayers = fields.Taxpayers(source="taxpayers")
    only_on_behalf = fields.Truth(required=False)


class BindingBody(fields.ReasonBody):
    """What its tokens must be bound to."""

    token_binding = fields.Choice(_BINDINGS, source="binding")


class RotateSecretBody(fields.ReasonBody):
    """A new secret beside the present one."""

    expires_at = fields.End(
        required=False, help_text="Its last day. Left out: as long as is usual."
    )
    retire_old_at = fields.End(required=False, help_text="The last day of the present ones.")
    allowed_networks = fields.Texts(required=False, help_text="Left out: those of the present one.")


class UseSecretBody(fields.ReasonBody):
    """From now on it logs in with a new secret."""

    expires_at = fields.End(required=False)


class CertificateBody(UseSecretBody):
    """A certificate, of which the subject is registered."""

    certificate = fields.Text(max_length=MAX_TEXT_LENGTH, help_text="In PEM.")


class UseKeysBody(UseSecretBody):
    """From now on it logs in with these keys."""

    keys = fields.PublicKeys()


class KeysBody(UseKeysBody):
    """Public keys beside the present one."""

    allowed_networks = fields.Texts(required=False)


class SystemUserFilters(ByName):
    client_id = fields.Text(required=False)
    taxpayer = fields.Taxpayer(
        becomes=of_taxpayer, required=False, help_text="Those of this taxpayer."
    )
    state = fields.Choice({"blocked": False}, required=False, source="blocked_at__isnull")


def _rows() -> "QuerySet[SystemUser]":
    current = Credential.objects.filter(slot__isnull=False)
    return SystemUser.objects.prefetch_related(
        "taxpayer", Prefetch("credentials", queryset=current)
    )


def _register(_row: None, *, taxpayer: TaxpayerId, **given: Any) -> Model | kinds.Once:
    given["taxpayer"] = services.named.find_taxpayer(taxpayer)
    if "keys" in given:
        return services.register_system_user_without_secret(**given)
    return records.show_once(services.register_system_user(**given))


_TASKS = (
    *kinds.end_tasks("SystemUser", "expires_at", EXTEND_SYSTEM_USER, END_SYSTEM_USER_EARLIER),
    *kinds.tasks_by_reason(vars(system_users)),
    kinds.ApiTask("limits", LIMIT_SYSTEM_USER, LimitsBody, verb="limit"),
    kinds.ApiTask("bind-tokens", change.BIND_TOKENS, BindingBody),
    kinds.ApiTask("rotate-secret", ROTATE_SECRET, RotateSecretBody, **records.SHOWN_ONCE),
    kinds.ApiTask("register-key", REGISTER_CLIENT_KEY, KeysBody),
    kinds.ApiTask("register-certificate", REGISTER_CLIENT_CERTIFICATE, CertificateBody),
    kinds.ApiTask("use-private-key", change.USE_PRIVATE_KEY, UseKeysBody),
    kinds.ApiTask("use-certificate", change.USE_CERTIFICATE, CertificateBody),
    kinds.ApiTask(
        "use-client-secret", change.USE_CLIENT_SECRET, UseSecretBody, **records.SHOWN_ONCE
    ),
)

KIND = kinds.RecordKind(
    name="system-users",
    singular="system user",
    parameter="client_id",
    names="The client_id of the system user.",
    address=lambda row: row.client_id,
    where=lambda text: Q(client_id=text),
    record=records.SystemUserRecord,
    duty=Duty.ISSUE,
    summary="List system users",
    order=("pk",),
    rows=_rows,
    filters=SystemUserFilters,
    create=kinds.ApiTask(
        "",
        system_users.ISSUE_CREDENTIALS,
        NewSystemUserBody,
        _register,
        "With keys it logs in with these (private_key_jwt), and no secret is issued. Only this"
        " answer has a secret.",
        answer=records.IssuedSystemUserRecord,
    ),
    change=kinds.ApiTask("", system_users.CHANGE_SYSTEM_USER, ChangeSystemUserBody),
    tasks=(*_TASKS, *records.CREDENTIAL_TASKS),
    parts={"credentials": records.CREDENTIALS},
)
