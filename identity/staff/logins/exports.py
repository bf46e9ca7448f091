"""The columns of the export of logins (contract 5)."""

from identity.staff.framework.export import Export, field
from taxpayers.services import Action

LOGINS = Export(
    Action.EXPORT_LOGINS,
    (
        ("reference", lambda row: row.pk),
        field("at"),
        ("outcome", lambda row: row.reason or "issued"),
        field("detail"),
        field("client_id"),
        field("subject"),
        field("actor"),
        field("scope"),
        field("kid"),
        field("source_address"),
        field("user_agent"),
    ),
    app_label="tokens",
)
