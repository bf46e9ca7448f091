"""`/permission-requests`: what intermediaries and new systems ask, and what taxpayers decide."""

from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from identity.api.framework.fields import Body, Choice, End, Moment, Reason, Taxpayer, Texts, Words
from identity.api.framework.kinds import ApiTask, RecordKind
from identity.api.framework.query import Filters
from identity.api.registry.evidence import EvidenceBody, EvidenceRecord
from identity.api.registry.permissions import PermissionRecord
from identity.api.registry.taxpayers import condition_of, of_intermediary
from taxpayers.duties import Duty
from taxpayers.models import PermissionRequest
from taxpayers.services import decisions
from taxpayers.services.permission_requests import present_permissions

_STATES = [str(name) for name, _title in PermissionRequest._meta.get_field("state").choices or ()]
_IfThere = partial(serializers.CharField, default=None, allow_null=True)


class PermissionRequestRecord(serializers.Serializer[PermissionRequest]):
    """A request. The decision is in `evidence`, what it led to in `permission` or `connected_…`.

    One of the kind `connection` has no intermediary, but the key of a new system.
    """

    id = serializers.UUIDField()
    kind = serializers.CharField(help_text="One of permission, connection.")
    state = serializers.SerializerMethodField()
    taxpayer = serializers.CharField(source="asked", help_text="Who is asked; it may not exist.")
    intermediary = _IfThere(source="intermediary.taxpayer.identifier")
    intermediary_name = _IfThere(source="intermediary.taxpayer.name")
    client_id = serializers.CharField(help_text="The system user that asked; of a connection none.")
    permissions = Words(source="codes", help_text="The permission codes; of a connection scopes.")
    name = serializers.CharField(help_text="What the system of a connection calls itself.")
    key_fingerprint = serializers.CharField(source="fingerprint", help_text="Of a connection.")
    valid_from = Moment(allow_null=True, help_text="null: once it is approved.")
    valid_until = Moment(allow_null=True, help_text="null: no end.")
    replaces = serializers.BooleanField(help_text="Whether approving ends what is granted now.")
    reference = serializers.CharField(source="own_reference", help_text="Of who asked.")
    return_address = serializers.CharField()
    asked_at = Moment(source="created_at")
    expires_at = Moment()
    decided_at = Moment(allow_null=True)
    permission = serializers.IntegerField(source="permission_id", allow_null=True)
    connected_client_id = _IfThere(source="system_user.client_id")
    evidence = EvidenceRecord(source="*", help_text="Of the decision.")

    def get_state(self, row: PermissionRequest) -> str:
        """One of open, approved, declined, withdrawn, expired."""
        return row.state_at(self.context["at"])


class WholePermissionRequestRecord(PermissionRequestRecord):
    """A request with what the taxpayer has granted to the intermediary today."""

    granted_now = serializers.SerializerMethodField()

    @extend_schema_field(PermissionRecord(many=True))
    def get_granted_now(self, row: PermissionRequest) -> Any:
        """Those that have not ended."""
        rows: Any = present_permissions(row, self.context["at"])
        return PermissionRecord(rows, many=True, context=self.context).data


class DecisionBody(Body):
    """The taxpayer that the person who decides acts for, and how that was proved."""

    taxpayer = Taxpayer(help_text="For whom the person acts: another one than asked is refused.")
    evidence = EvidenceBody(required=False)
    reason = Reason(required=False)


class ApproveBody(DecisionBody):
    """What is left out is approved as it was asked."""

    permissions = Texts(required=False, source="codes", help_text="Some of those asked for.")
    valid_until = End(required=False, source="until", help_text="Not later than asked for.")


class PermissionRequestFilters(Filters):
    taxpayer = Taxpayer(
        becomes=condition_of, required=False, help_text="Those that this taxpayer is asked."
    )
    intermediary = Taxpayer(
        becomes=of_intermediary, required=False, help_text="Those of this intermediary."
    )
    state = Choice(_STATES, required=False)


KIND = RecordKind(
    name="permission-requests",
    singular="permission request",
    parameter="permission_request",
    names="The id of the request.",
    record=WholePermissionRequestRecord,
    duty=Duty.GRANT,
    also_read_by=frozenset({Duty.ISSUE}),
    summary="List permission requests, the newest first",
    order=("-pk",),
    rows=lambda: PermissionRequest.objects.prefetch_related(
        "intermediary__taxpayer", "system_user"
    ),
    filters=PermissionRequestFilters,
    listed=PermissionRequestRecord,
    tasks=(
        ApiTask("approve", decisions.APPROVE_PERMISSION_REQUEST, ApproveBody),
        ApiTask("approve-connection", decisions.APPROVE_CONNECTION, ApproveBody),
        ApiTask("decline", decisions.DECLINE_PERMISSION_REQUEST, DecisionBody),
        ApiTask("decline-connection", decisions.DECLINE_CONNECTION, DecisionBody),
    ),
)
