"""`/system-users`: the clients. Those of the management API itself only operators change."""

from typing import Any

from django.db.models import Model, Prefetch, Q, QuerySet

from identity.api.framework import fields
from identity.api.framework.kinds import ApiTask, Asker, Once, RecordKind, Values
from identity.api.framework.query import ByName
from identity.api.registry import system_user_records
from identity.api.registry.system_user_tasks import TASKS
from identity.api.registry.taxpayers import OfTaxpayer
from taxpayers import services
from taxpayers.duties import Duty
from taxpayers.models import MAX_LOGINS_PER_MINUTE, Credential, SystemUser
from taxpayers.services.system_users import CHANGE_SYSTEM_USER, ISSUE_CREDENTIALS


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


class SystemUserFilters(ByName):
    """Which system users are listed."""

    client_id = fields.Text(required=False)
    taxpayer = OfTaxpayer(required=False, help_text="Those of this taxpayer.")
    state = fields.Choice({"blocked": False}, required=False, source="blocked_at__isnull")


def _rows() -> "QuerySet[SystemUser]":
    current = Credential.objects.filter(slot__isnull=False)
    return SystemUser.objects.prefetch_related(
        "taxpayer", Prefetch("credentials", queryset=current)
    )


def _register(_row: None, values: Values, asker: Asker) -> Model | Once:
    taxpayer = services.named.find_taxpayer(values["taxpayer"])
    given: dict[str, Any] = {**values, "taxpayer": taxpayer, **asker.context}
    if "keys" in given:
        return services.register_system_user_with_keys(**given)
    return system_user_records.show_once(services.register_system_user(**given))


KIND = RecordKind(
    name="system-users",
    singular="system user",
    parameter="client_id",
    names="The client_id of the system user.",
    address=lambda row: row.client_id,
    where=lambda text: Q(client_id=text),
    record=system_user_records.SystemUserRecord,
    duty=Duty.ISSUE,
    summary="List system users",
    order=("pk",),
    rows=_rows,
    filters=SystemUserFilters,
    create=ApiTask(
        "",
        ISSUE_CREDENTIALS,
        NewSystemUserBody,
        _register,
        "With keys it logs in with these (private_key_jwt), and no secret is issued. Only this"
        " answer has a secret.",
        answer=system_user_records.IssuedSystemUserRecord,
    ),
    change=ApiTask("", CHANGE_SYSTEM_USER, ChangeSystemUserBody),
    tasks=(*TASKS, *system_user_records.CREDENTIAL_TASKS),
    parts={"credentials": system_user_records.CREDENTIALS},
)
