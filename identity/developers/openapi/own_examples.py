"""What `/api/v1/` answers, as examples; tests compare their members with those of real answers."""

from identity.developers.examples import REFERENCE
from identity.developers.openapi.parts import Part
from tokens.answers.help_page import help_url
from tokens.explanation import CheckState
from tokens.refusals.table import Check

_SECRET = {
    "hint": "x7Qa",
    "state": "live",
    "issued_this_token": True,
    "created_at": "2026-01-05T02:00:00Z",
    "expires_at": "2027-01-05T02:00:00Z",
    "revoked_at": None,
    "last_used_at": "2026-11-22T01:59:31Z",
    "allowed_networks": [],
}


def me() -> Part:
    """`GET /api/v1/me`."""
    return {
        "subject": "C1234567890",
        "taxpayer": {"tin": "C1234567890"},
        "actor": None,
        "client_id": "ci_test_…",
        "scopes": ["InvoicingAPI"],
        "permissions": None,
        "issued_at": "2026-11-22T02:00:00Z",
        "expires_at": "2026-11-22T03:00:00Z",
        "environment": "test",
    }


def credentials() -> Part:
    """`GET /api/v1/credentials/current`."""
    return {
        "client_id": "ci_test_…",
        "name": "ERP of the warehouse",
        "taxpayer": {"tin": "C1234567890"},
        "scopes": ["InvoicingAPI"],
        "expires_at": None,
        "allowed_permissions": [],
        "is_limited_to_taxpayers": False,
        "secrets": [_SECRET],
        "rate_limit": {
            "logins_per_minute": 12,
            "remaining": 11,
            "resets_at": "2026-11-22T02:00:31Z",
        },
        "source_address": "203.0.113.7",
        "environment": "test",
    }


def revoked() -> Part:
    """`DELETE /api/v1/credentials/current`."""
    return {
        "revoked": {"hint": "x7Qa", "revoked_at": "2026-11-22T02:01:07Z"},
        "live_secrets": [{**_SECRET, "hint": "p0Zk", "issued_this_token": False}],
        "description": "The secret is revoked, and no token that it issued is active any more. …",
    }


def permissions() -> Part:
    """`GET /api/v1/permissions`."""
    return {
        "intermediary": {"taxpayer": "D1111111111", "is_active": True, "active_until": None},
        "permissions": [
            {
                "taxpayer": "C1234567890",
                "permissions": ["documents:submit", "documents:view"],
                "state": "in_force",
                "valid_from": "2026-01-01T16:00:00Z",
                "valid_until": None,
            }
        ],
        "next_cursor": None,
    }


def explanation() -> Part:
    """`POST /api/v1/logins/{reference}/explanation`."""
    return {
        "reference": str(REFERENCE),
        "at": "2026-11-22T02:00:00Z",
        "outcome": "permission_expired",
        "explanation": "On 2026-11-22 10:00:00 (UTC+0800) the login was refused: …",
        "subject": "C1234567890",
        "actor": "D1111111111",
        "scope": None,
        "checks": [
            {"question": Check.CREDENTIALS.question(), "state": CheckState.PASSED, "advice": None},
            {
                "question": Check.PERMISSION_IN_FORCE.question(),
                "state": CheckState.FAILED,
                "advice": "The permission from the taxpayer named by onbehalfof expired on …",
            },
        ],
        "help": help_url("permission_expired"),
    }
