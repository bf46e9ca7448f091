"""A row as a database answers: each column has a value that no other one has."""

from datetime import UTC, datetime, timedelta
from typing import Any

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
HASHED = "sha256$of-the-secret"

# In the order of `FACT_COLUMNS`, behind the clock.
COLUMNS: dict[str, Any] = {
    "clock": AT,
    "number": 0,
    "client": 41,
    "scopes": "InvoicingAPI Reports",
    "logins_per_minute": 12,
    "blocked_at": AT - 1 * HOUR,
    "expires_at": AT + 2 * HOUR,
    "tin": "C1000000001",
    "rob": "R-1",
    "is_active": False,
    "secret": 51,
    "lookup": HASHED,
    "hint": "7aQ2",
    "secret_expires_at": AT + 3 * HOUR,
    "secret_revoked_at": AT - 4 * HOUR,
    "epoch": 7,
    "window_started_at": AT - 5 * HOUR,
    "used": 8,
    "intermediary": 61,
    "intermediary_is_active": False,
    "active_until": AT + 6 * HOUR,
    "represented_is_active": False,
    "permission": 71,
    "valid_from": AT - 7 * HOUR,
    "valid_until": AT + 8 * HOUR,
    "revoked_at": AT - 9 * HOUR,
    "code": "documents:view",
    "public_jwk": '{"kty":"EC"}',
    "token_binding": "dpop",
    "allowed_networks": "192.0.2.0/24 2001:db8::/32",
    "allowed_permissions": "documents:submit documents:view",
    "has_allowed_taxpayers": True,
    "is_allowed": False,
    "only_on_behalf": True,
}


def row(*more: Any, **changes: Any) -> tuple[Any, ...]:
    """With these differences; `more` are the columns of another statement, at its end."""
    assert changes.keys() <= COLUMNS.keys()
    return (*(COLUMNS | changes).values(), *more)
