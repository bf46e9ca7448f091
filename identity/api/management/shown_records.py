"""The kinds of records that commands list and show: with the fields of the management API."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from identity.api.framework.fields import Text
from identity.api.framework.kinds import RecordKind
from identity.api.framework.query import Filters
from identity.api.framework.records import Listing
from identity.api.management import operator_records
from identity.api.registry import (
    credential_records,
    intermediaries,
    logins,
    permission_codes,
    permission_requests,
    permissions,
    system_users,
    taxpayers,
)
from taxpayers.management.find_records import find_system_user

_MODULES = (
    *(taxpayers, intermediaries, permissions, permission_codes, permission_requests),
    *(system_users, logins),
)
KINDS: dict[str, RecordKind] = {
    kind.singular.replace(" ", "_"): kind
    for kind in (*(module.KIND for module in _MODULES), *operator_records.KINDS)
}


class _OfSystemUser(Filters):
    client_id = Text()


def _credentials(given: dict[str, Any], _owner: Any) -> "QuerySet[Any]":
    return credential_records.LISTING.rows({}, find_system_user(given["client_id"]))


LISTINGS: dict[str, Listing] = {
    **{m.LISTING.name: m.LISTING for m in _MODULES},
    **{listing.name: listing for listing in operator_records.LISTINGS},
    "credentials": replace(credential_records.LISTING, filters=_OfSystemUser, rows=_credentials),
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
