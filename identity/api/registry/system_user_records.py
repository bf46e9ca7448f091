"""System users in the management API: no secret is shown but a new one, in its first answer."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from identity.api.framework.fields import End, Moment, ReasonBody, Texts, Words
from identity.api.framework.kinds import ApiTask, Listing, Once, part_of
from taxpayers.models import Credential, SystemUser
from taxpayers.moments import exact_text
from taxpayers.secret_once import secret_data
from taxpayers.services import IssuedSecret
from taxpayers.services.credential_changes import RETIRE_SECRET, REVOKE_SECRET
from taxpayers.services.live_credentials import CHANGE_SECRET


class CredentialRecord(serializers.Serializer[Credential]):
    """A secret, a key or a certificate that a system user logs in with."""

    id = serializers.IntegerField()
    kind = serializers.CharField(read_only=True, help_text="One of secret, key, certificate.")
    hint = serializers.CharField(help_text="The last characters.")
    name = serializers.CharField(help_text="The kid of a key, the name in a certificate, or empty.")
    state = serializers.SerializerMethodField()
    created_at = Moment()
    expires_at = Moment()
    revoked_at = Moment(allow_null=True)
    allowed_networks = Words(help_text="Logins come only from these; none: from anywhere.")

    def get_state(self, row: Credential) -> str:
        """One of live, expired, revoked."""
        return row.state(self.context["at"])


class CredentialUseRecord(CredentialRecord):
    """The same, and when it was last used."""

    last_used_at = Moment(
        allow_null=True,
        help_text="The beginning of the minute of its last token; null: it never got one.",
    )


CREDENTIALS = Listing(
    "credentials",
    "List secrets, keys and certificates, the newest first",
    CredentialUseRecord,
    ("-pk",),
    lambda owner: owner.credentials.select_related("system_user__usage"),
)


class RetireBody(ReasonBody):
    """An earlier last day of a secret."""

    expires_at = End(source="last_moment")


class NetworksBody(ReasonBody):
    """From where a secret or key may be used; none: from anywhere."""

    allowed_networks = Texts()


_ADDRESS = part_of("credentials", "credential", "secret, key or certificate")
CREDENTIAL_TASKS = (
    ApiTask("revoke", REVOKE_SECRET, ReasonBody, note="Its tokens end.", **_ADDRESS),
    ApiTask("retire", RETIRE_SECRET, RetireBody, **_ADDRESS),
    ApiTask("networks", CHANGE_SECRET, NetworksBody, verb="set_networks_of", **_ADDRESS),
)


_NOTE = "Store the client_secret now: it is not shown again, and cannot be read."
_LATER = {
    "client_secret": None,
    "note": "The client_secret was shown in the first answer to this request, and is stored"
    " nowhere. If that answer was lost, revoke this secret, and issue another one: POST"
    " .../rotate-secret with a new Idempotency-Key.",
}


class BlockRecord(serializers.Serializer[SystemUser]):
    """Since when a system user is blocked, who did it and why."""

    at = Moment(source="blocked_at")
    by = serializers.CharField(source="blocked_by")
    reason = serializers.CharField(source="blocked_reason")


class SystemUserRecord(serializers.Serializer[SystemUser]):
    """A system user: the OAuth client of one taxpayer."""

    client_id = serializers.CharField()
    taxpayer = serializers.CharField(source="taxpayer.identifier", help_text="TIN or TIN:ROB.")
    name = serializers.CharField()
    scopes = Words()
    logins_per_minute = serializers.IntegerField(help_text="0: unlimited, still counted.")
    expires_at = Moment(allow_null=True, help_text="Its last moment; null: no end.")
    blocked = serializers.SerializerMethodField()
    login_method = serializers.CharField(
        help_text="One of client_secret, private_key_jwt, tls_client_auth."
    )
    token_binding = serializers.SerializerMethodField()
    allowed_permissions = Words(help_text="It may use these at most; none: all that are granted.")
    allowed_taxpayers = Words(help_text="It may act for these at most; none: for all.")
    only_on_behalf = serializers.BooleanField(help_text="No token for its own taxpayer.")
    return_addresses = Words(help_text="Where requests for permissions may lead back to.")
    credentials = serializers.SerializerMethodField()

    @extend_schema_field(BlockRecord(allow_null=True))
    def get_blocked(self, row: SystemUser) -> Any:
        """null: it is not blocked."""
        return None if row.blocked_at is None else BlockRecord(row).data

    def get_token_binding(self, row: SystemUser) -> str:
        """What its tokens must be bound to: one of none, dpop, tls."""
        return row.token_binding or "none"

    @extend_schema_field(CredentialRecord(many=True))
    def get_credentials(self, row: SystemUser) -> Any:
        """Those that are not revoked or replaced: two at most. All: GET .../credentials."""
        rows: Any = sorted(row.credentials.all(), key=lambda secret: secret.pk)
        return CredentialRecord(rows, many=True, context=self.context).data


class IssuedRecord(serializers.Serializer[Any]):
    """A new secret. The repeated answer to the same request does not have it."""

    client_id = serializers.CharField()
    client_secret = serializers.CharField(allow_null=True)
    secret_hint = serializers.CharField()
    secret_expires_at = Moment()
    allowed_networks = serializers.ListField(child=serializers.CharField())
    environment = serializers.CharField()
    token_endpoint = serializers.CharField()
    note = serializers.CharField()


class IssuedSystemUserRecord(SystemUserRecord):
    """A system user with its new secret, which no other answer has."""

    issued = IssuedRecord(required=False)


def show_once(issued: IssuedSecret) -> Once:
    """The system user, and the new secret, only for this answer."""
    data = secret_data(issued)
    shown = {**data, "secret_expires_at": exact_text(data["secret_expires_at"]), "note": _NOTE}
    return Once(issued.system_user, shown, _LATER)


SHOWN_ONCE: Any = {"once": show_once, "answer": IssuedSystemUserRecord}  # of a task
