"""The columns of the exports of the registry; their names are for programs, not translated."""

from identity.staff.framework.export import Export, field, taxpayer_columns
from taxpayers import actions
from taxpayers.services.granted_permissions import codes_of

# The columns that an import reads, and one that it ignores.
TAXPAYERS = Export(
    actions.EXPORT_REGISTRY,
    (
        *taxpayer_columns(lambda row: row),
        ("active", lambda row: row.is_active),
        ("registered_at", lambda row: row.created_at),
    ),
)
INTERMEDIARIES = Export(
    actions.EXPORT_REGISTRY,
    (
        *taxpayer_columns(lambda row: row.taxpayer),
        ("active", lambda row: row.is_active),
        field("active_until"),
        ("registered_at", lambda row: row.created_at),
        ("taxpayer_active", lambda row: row.taxpayer.is_active),
    ),
)
PERMISSIONS = Export(
    actions.EXPORT_REGISTRY,
    (
        ("taxpayer", lambda row: row.taxpayer.identifier),
        ("taxpayer_name", lambda row: row.taxpayer.name),
        ("intermediary", lambda row: row.intermediary.taxpayer.identifier),
        ("intermediary_name", lambda row: row.intermediary.taxpayer.name),
        ("codes", lambda row: " ".join(codes_of(row))),
        field("valid_from"),
        field("valid_until"),
        field("revoked_at"),
        ("granted_at", lambda row: row.created_at),
    ),
)
