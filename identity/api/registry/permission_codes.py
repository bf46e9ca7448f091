"""`/permission-codes`: what taxpayers can permit. Staff extend the table."""

from rest_framework import serializers

from identity.api.framework.kinds import RecordKind
from identity.api.framework.records import Listing
from taxpayers.duties import Duty
from taxpayers.models import PermissionCode


class PermissionCodeRecord(serializers.Serializer[PermissionCode]):
    """A permission code."""

    code = serializers.CharField()
    description = serializers.CharField()


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
    ("code",),
    lambda _given, _owner: PermissionCode.objects.all(),
)
