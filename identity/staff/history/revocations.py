"""Who revoked a permission, and why: the history has it."""

from collections.abc import Collection

from django.http import HttpRequest

from taxpayers import actions
from taxpayers.models import Change, GrantedPermission


def revocations_of(
    request: HttpRequest, permissions: Collection[GrantedPermission]
) -> dict[int, Change]:
    """The revocation of each, by the key of the permission; empty for who may not see it."""
    keys = [str(row.pk) for row in permissions if row.revoked_at is not None]
    if not keys or not request.user.has_perm("taxpayers.view_change"):
        return {}
    found = Change.objects.filter(
        object_type=GrantedPermission._meta.model_name,
        object_id__in=keys,
        action=actions.REVOKE_PERMISSION.name,
    )
    return {int(change.object_id): change for change in found.order_by()}
