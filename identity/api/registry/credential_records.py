"""Secrets, keys and certificates of a system user: never a secret or a hash of one."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from identity.api.framework.fields import Moment, Words
from identity.api.framework.records import Listing
from taxpayers.facts.validity import is_over
from taxpayers.models import Credential, SystemUser


class CredentialRecord(serializers.Serializer[Credential]):
    """A secret, a key or a certificate that a system user logs in with."""

    id = serializers.IntegerField()
    kind = serializers.SerializerMethodField()
    hint = serializers.CharField(help_text="The last characters.")
    name = serializers.CharField(help_text="The kid of a key, the name in a certificate, or empty.")
    state = serializers.SerializerMethodField()
    created_at = Moment()
    expires_at = Moment()
    revoked_at = Moment(allow_null=True)
    allowed_networks = Words(help_text="Logins come from these alone; none: from anywhere.")

    def get_kind(self, row: Credential) -> str:
        """One of secret, key, certificate."""
        if row.is_certificate:
            return "certificate"
        return "key" if row.is_key else "secret"

    def get_state(self, row: Credential) -> str:
        """One of live, expired, revoked."""
        return state_of(row, self.context["at"])


class CredentialUseRecord(CredentialRecord):
    """The same, and when it was last used."""

    last_used_at = Moment(
        allow_null=True,
        help_text="The beginning of the minute of its last token; null: it never got one.",
    )


def state_of(row: Credential, at: datetime) -> str:
    """One of the states, in words."""
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if is_over(row.expires_at, at) else "live"


def _rows(_given: dict[str, Any], owner: SystemUser) -> "QuerySet[Credential]":
    return owner.credentials.select_related("system_user__usage")


LISTING = Listing(
    "credentials",
    "List secrets, keys and certificates, the newest first",
    CredentialUseRecord,
    ("-pk",),
    _rows,
)
