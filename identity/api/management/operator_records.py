"""The kinds of records that commands list and show: with the fields of the management API."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Q
from rest_framework import serializers

from identity.api.framework.fields import Text
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
from identity.api.registry.system_user_records import CREDENTIALS
from taxpayers.management.find_records import find_system_user
from taxpayers.models import Credential

_KINDS = (
    *(taxpayers.KIND, intermediaries.KIND, permissions.KIND, permissions.CODES),
    *(permission_requests.KIND, system_users.KIND, logins.KIND),
)
KINDS: dict[str, RecordKind] = {kind.singular.replace(" ", "_"): kind for kind in _KINDS}


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
    listing.name: listing for listing in (*(kind.listing for kind in _KINDS), _CREDENTIALS)
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
