"""What `/api/v1/` answers, as schemas. Pure but for the states of a check."""

from identity.developers.openapi.parts import (
    BOOLEAN,
    MOMENT,
    TAXPAYER,
    TEXT,
    TEXTS,
    URI,
    UUID,
    WHOLE_NUMBER,
    described,
    list_of,
    or_null,
    record,
    reference,
)
from tokens.explanation import CheckState

ME = record(
    subject=described(TEXT, "The represented taxpayer: TIN or TIN:ROB."),
    taxpayer=TAXPAYER,
    actor=described(or_null(TEXT), "The intermediary that acts; null: the taxpayer itself."),
    client_id=TEXT,
    scopes=TEXTS,
    permissions=described(or_null(TEXTS), "What it may do; null: everything."),
    issued_at=MOMENT,
    expires_at=MOMENT,
    environment={"enum": ["live", "test"]},
)
SECRET = record(
    "kid",
    "certificate",
    kid=TEXT,
    certificate=TEXT,
    hint=described(TEXT, "The end of the secret."),
    state={"enum": ["live", "expired", "revoked"]},
    issued_this_token=BOOLEAN,
    created_at=MOMENT,
    expires_at=MOMENT,
    revoked_at=or_null(MOMENT),
    last_used_at=or_null(MOMENT),
    allowed_networks=described(TEXTS, "None: from anywhere."),
)
CREDENTIALS = record(
    client_id=TEXT,
    name=TEXT,
    taxpayer=TAXPAYER,
    scopes=TEXTS,
    expires_at=or_null(MOMENT),
    allowed_permissions=described(TEXTS, "None: all that taxpayers grant."),
    is_limited_to_taxpayers=BOOLEAN,
    secrets=list_of(reference("schemas", "Secret")),
    rate_limit=record(
        logins_per_minute=described(WHOLE_NUMBER, "0: unlimited."),
        remaining=or_null(WHOLE_NUMBER),
        resets_at=or_null(MOMENT),
    ),
    source_address=described(or_null(TEXT), "The address that you are seen from."),
    environment={"enum": ["live", "test"]},
)
REVOKED = record(
    revoked=record(hint=TEXT, revoked_at=MOMENT),
    live_secrets=list_of(reference("schemas", "Secret")),
    description=TEXT,
)
PERMISSIONS = record(
    intermediary=or_null(record(taxpayer=TEXT, is_active=BOOLEAN, active_until=or_null(MOMENT))),
    permissions=list_of(
        record(
            taxpayer=described(TEXT, "What you send as `onbehalfof`."),
            permissions=TEXTS,
            state={"enum": ["in_force", "not_yet_valid"]},
            valid_from=MOMENT,
            valid_until=or_null(MOMENT),
        )
    ),
    next_cursor=described(or_null(TEXT), "null: this was the last page."),
)
EXPLANATION = record(
    reference=UUID,
    at=MOMENT,
    outcome=described(TEXT, "`issued`, or the reason of the refusal."),
    explanation=TEXT,
    subject=or_null(TEXT),
    actor=or_null(TEXT),
    scope=or_null(TEXT),
    checks=list_of(
        record(
            question=TEXT,
            state={"enum": [str(state) for state in CheckState]},
            advice=or_null(TEXT),
        )
    ),
    help=or_null(URI),
)
