"""Secrets, keys and certificates of a system user: never a secret or a hash of one."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from identity.api.framework.fields import Body, End, Moment, Reason, Texts, Words
from identity.api.framework.kinds import ApiTask, part_of
from identity.api.framework.records import Listing
from identity.api.registry.taxpayers import ReasonBody
from taxpayers.models import Credential, SystemUser
from taxpayers.services.credential_changes import RETIRE_SECRET, REVOKE_SECRET
from taxpayers.services.limits.source_networks import CHANGE_SECRET


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


def _rows(_given: dict[str, Any], owner: SystemUser) -> "QuerySet[Credential]":
    return owner.credentials.select_related("system_user__usage")


LISTING = Listing(
    "credentials",
    "List secrets, keys and certificates, the newest first",
    CredentialUseRecord,
    ("-pk",),
    _rows,
)


class RetireBody(Body):
    """An earlier last day of a secret."""

    expires_at = End(source="last_moment")
    reason = Reason()


class NetworksBody(Body):
    """From where a secret or key may be used; none: from anywhere."""

    allowed_networks = Texts()
    reason = Reason()


_ADDRESS = part_of("credentials", "credential", "secret, key or certificate")
TASKS = (
    ApiTask("revoke", REVOKE_SECRET, ReasonBody, note="Its tokens end.", **_ADDRESS),
    ApiTask("retire", RETIRE_SECRET, RetireBody, **_ADDRESS),
    ApiTask("networks", CHANGE_SECRET, NetworksBody, verb="set_networks_of", **_ADDRESS),
)
