"""The kinds of records that commands list and show: with the fields of the management API.

Only operators list and show staff accounts, protected APIs, signing keys and every change.
"""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone
from rest_framework import serializers

from identity.api.framework.fields import Moment, Text
from identity.api.framework.kinds import Listing, RecordKind
from identity.api.framework.query import Filters
from identity.api.registry import (
    intermediaries,
    logins,
    permission_requests,
    permissions,
    system_users,
    taxpayers,
)
from identity.api.registry.history import ChangeRecord, HistoryFilters
from identity.api.registry.system_user_records import CREDENTIALS
from taxpayers.duties import Duty
from taxpayers.management.find_records import find_system_user
from taxpayers.models import Change, Credential
from tokens.models import ProtectedApi, SigningKey


class _Account(serializers.Serializer[User]):
    username = serializers.CharField()
    name = serializers.CharField(source="get_full_name")
    roles = serializers.ListField(source="groups.all", child=serializers.CharField())
    is_superuser = serializers.BooleanField()
    is_active = serializers.BooleanField()
    last_login = Moment(allow_null=True)


class _ProtectedApi(serializers.Serializer[ProtectedApi]):
    client_id = serializers.CharField()
    name = serializers.CharField()
    audience = serializers.CharField()
    is_active = serializers.BooleanField()
    secrets = serializers.SerializerMethodField()

    def get_secrets(self, row: ProtectedApi) -> list[str]:
        """The hint of each that is valid."""
        return [one.hint for one in row.credentials.all() if one.is_live(timezone.now())]


class _SigningKey(serializers.Serializer[SigningKey]):
    kid = serializers.CharField()
    alg = serializers.CharField()
    published_at = Moment(source="created_at")
    signs_from = Moment()
    compromised_at = Moment(allow_null=True)


class _Change(ChangeRecord):
    record = serializers.CharField(source="label")
    kind = serializers.CharField(source="object_type")
    id = serializers.IntegerField()


class _ChangeFilters(HistoryFilters):
    action = Text(required=False)
    by = Text(required=False)


_OPERATORS = (
    Listing("accounts", "", _Account, ("username",), User.objects.all),
    Listing("protected_apis", "", _ProtectedApi, ("client_id",), ProtectedApi.objects.all),
    Listing("signing_keys", "", _SigningKey, ("-generation",), SigningKey.objects.all),
    Listing("changes", "", _Change, ("-at", "-id"), Change.objects.all, _ChangeFilters),
)
_NAMED_BY = ("username", "client_id", "kid")  # a change has no name


def _kind(listing: Listing, field: str) -> RecordKind:
    singular = listing.name.removesuffix("s").replace("_", " ")
    return RecordKind(
        *(listing.name, singular, field, f"Its {field}."),
        find=lambda text: listing.rows().filter(**{field: text}).first(),
        address=lambda row: str(getattr(row, field)),
        record=listing.record,
        duty=Duty.AUDIT,
        listing=listing,
    )


_OF_PROGRAMS = (
    *(taxpayers.KIND, intermediaries.KIND, permissions.KIND, permissions.CODES),
    *(permission_requests.KIND, system_users.KIND, logins.KIND),
)
KINDS: dict[str, RecordKind] = {
    kind.singular.replace(" ", "_"): kind
    for kind in (*_OF_PROGRAMS, *map(_kind, _OPERATORS, _NAMED_BY))
}


class _SystemUser(Text):
    def to_internal_value(self, data: Any) -> Q:  # type: ignore[override]
        return Q(system_user=find_system_user(super().to_internal_value(data)))


class _OfSystemUser(Filters):
    client_id = _SystemUser()


_CREDENTIALS = replace(
    CREDENTIALS,
    filters=_OfSystemUser,
    rows=lambda: Credential.objects.select_related("system_user__usage"),
)
LISTINGS: dict[str, Listing] = {
    listing.name: listing
    for listing in (*(kind.listing for kind in _OF_PROGRAMS), *_OPERATORS, _CREDENTIALS)
}


def record_of(kind: type[serializers.Serializer[Any]], row: Any, at: datetime) -> dict[str, Any]:
    """As the management API shows it to operators."""
    return dict(kind(row, context={"at": at, "may_change": True}).data)


def cell(value: Any) -> str:
    """A value for people, in one line and without a tab."""
    if isinstance(value, list) and not any(isinstance(one, dict) for one in value):
        return " ".join(map(str, value))
    if isinstance(value, dict | list | bool):
        return json.dumps(value)
    return "" if value is None else " ".join(str(value).split())
