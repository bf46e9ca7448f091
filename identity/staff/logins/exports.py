"""The columns of the export of logins (contract 5)."""

from django.db.models import OuterRef, QuerySet, Subquery

from identity.staff.framework.export import Export, field
from taxpayers.models import Credential
from tokens import actions
from tokens.models import LoginEvent

LOGINS = Export(
    actions.EXPORT_LOGINS,
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
        field("parameter"),
        field("since"),
        # Its last characters, as `with_hints` reads them.
        ("secret", lambda row: f"…{row.secret_hint}" if row.secret_hint else ""),
    ),
    app_label="tokens",
)


def with_hints(rows: "QuerySet[LoginEvent]") -> "QuerySet[LoginEvent]":
    """The logins with the last characters of the secret, key or certificate of each."""
    used = Credential.objects.filter(pk=OuterRef("secret_id"))
    return rows.annotate(secret_hint=Subquery(used.values("hint")))
