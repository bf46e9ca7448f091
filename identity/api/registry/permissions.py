"""`/permissions`, which taxpayers grant to intermediaries, and `/permission-codes`."""

from typing import Any

from rest_framework import serializers

from identity.api.framework import fields, kinds
from identity.api.framework.query import Filters
from identity.api.registry.evidence import EvidenceBody, EvidenceRecord
from identity.api.registry.taxpayers import of_intermediary, of_taxpayer
from taxpayers.duties import Duty
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, PermissionCode
from taxpayers.services import grant_permission, named
from taxpayers.services.ends import END_PERMISSION_EARLIER, EXTEND_PERMISSION
from taxpayers.services.granted_permissions import GRANT_PERMISSION, REVOKE_PERMISSION


class PermissionRecord(serializers.Serializer[GrantedPermission]):
    """A granted permission."""

    id = serializers.IntegerField()
    taxpayer = serializers.CharField(source="taxpayer.identifier", help_text="Who permits.")
    intermediary = serializers.CharField(
        source="intermediary.taxpayer.identifier", help_text="Who may act for it."
    )
    permissions = fields.Words(source="codes.all", help_text="The permission codes.")
    state = serializers.SerializerMethodField()
    valid_from = fields.Moment()
    valid_until = fields.Moment(allow_null=True, help_text="Its last moment; null: no end.")
    revoked_at = fields.Moment(allow_null=True)
    granted_at = fields.Moment(source="created_at")
    evidence = EvidenceRecord(source="*", help_text="Of its last change; the history has all.")

    def get_state(self, row: GrantedPermission) -> str:
        """One of in_force, not_yet_valid, expired, revoked."""
        return row.state(self.context["at"])


class PermissionRowBody(fields.Body):
    """A permission, of which taxpayer and intermediary are registered."""

    taxpayer = fields.Taxpayer(help_text="Who permits.")
    intermediary = fields.Taxpayer(help_text="Who may act for it.")
    permissions = fields.Texts(source="codes", help_text="Permission codes: GET /permission-codes.")
    valid_from = fields.Start(
        required=False, help_text="Left out: now. An import takes the past for now."
    )
    valid_until = fields.End(
        required=False, allow_null=True, help_text="Left out, or null: no end."
    )
    evidence = EvidenceBody(required=False)


class NewPermissionBody(PermissionRowBody):
    """What is needed to grant a permission."""

    reason = fields.Reason(required=False)


class EvidencedBody(fields.Body):
    """Who decided it."""

    evidence = EvidenceBody(required=False)


class RevokeBody(EvidencedBody, fields.ReasonBody):
    """Why, and who decided it."""


class PermissionFilters(Filters):
    taxpayer = fields.Taxpayer(
        becomes=of_taxpayer, required=False, help_text="Those that this taxpayer has granted."
    )
    intermediary = fields.Taxpayer(
        becomes=of_intermediary, required=False, help_text="Those of this intermediary."
    )


def _grant(
    _row: None, *, taxpayer: TaxpayerId, intermediary: TaxpayerId, **given: Any
) -> GrantedPermission:
    return grant_permission(
        taxpayer=named.find_taxpayer(taxpayer),
        intermediary=named.role_of(named.find_taxpayer(intermediary)),
        **given,
    )


KIND = kinds.RecordKind(
    name="permissions",
    singular="permission",
    parameter="permission",
    names="The id of the permission.",
    record=PermissionRecord,
    duty=Duty.GRANT,
    summary="List granted permissions",
    order=("taxpayer_id", "pk"),
    # Not joins: PostgreSQL then reads the index in its order, and ends with the page.
    rows=lambda: GrantedPermission.objects.prefetch_related(
        "taxpayer", "intermediary__taxpayer", "codes"
    ),
    filters=PermissionFilters,
    create=kinds.ApiTask(
        "",
        GRANT_PERMISSION,
        NewPermissionBody,
        _grant,
        "Safe to repeat: one with the same codes and end that has begun by then is answered with"
        " 200.",
    ),
    tasks=(
        *kinds.end_tasks(
            *("", "valid_until", EXTEND_PERMISSION, END_PERMISSION_EARLIER, EvidencedBody),
            note="One that has ended is granted anew from now on: the answer is the new"
            " permission.",
        ),
        kinds.ApiTask("revoke", REVOKE_PERMISSION, RevokeBody),
    ),
)


class PermissionCodeRecord(serializers.Serializer[PermissionCode]):
    """A permission code."""

    code = serializers.CharField()
    description = serializers.CharField()


CODES = kinds.RecordKind(
    name="permission-codes",
    singular="permission code",
    parameter="code",
    names="The permission code.",
    record=PermissionCodeRecord,
    duty=Duty.GRANT,
    also_read_by=frozenset({Duty.ISSUE}),
    summary="List permission codes",
    order=("code",),
    rows=PermissionCode.objects.all,
)
