"""`/permission-codes`: what taxpayers can permit. Staff extend the table."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from identity.api.framework.kinds import RecordKind
from identity.api.framework.query import Filters
from identity.api.framework.records import Listing
from taxpayers.duties import Duty
from taxpayers.models import PermissionCode


class PermissionCodeRecord(serializers.Serializer[PermissionCode]):
    """A permission code."""

    code = serializers.CharField()
    description = serializers.CharField()


class PermissionCodeFilters(Filters):
    """A list without filters."""


def _rows(_given: dict[str, Any], _owner: Any) -> "QuerySet[PermissionCode]":
    return PermissionCode.objects.all()


KIND = RecordKind(
    name="permission-codes",
    singular="permission code",
    parameter="code",
    names="The permission code.",
    find=lambda code: PermissionCode.objects.filter(pk=code).first(),
    address=lambda row: str(row.pk),
    record=PermissionCodeRecord,
    duty=Duty.GRANT,
    also_read_by=frozenset({Duty.ISSUE}),
)
LISTING = Listing(
    "permission_codes",
    "List permission codes",
    PermissionCodeRecord,
    PermissionCodeFilters,
    ("code",),
    _rows,
)
