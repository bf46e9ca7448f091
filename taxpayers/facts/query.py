"""Loads the facts that a decision about a client needs, in one query (contract 4)."""

from datetime import UTC, datetime

from taxpayers.credentials import is_same_secret
from taxpayers.facts.values import (
    ClientFacts,
    Facts,
    IntermediaryFacts,
    PermissionFacts,
    RepresentedFacts,
    SecretFacts,
)
from taxpayers.identifiers import TaxpayerId
from taxpayers.sql import Row, fetch_with_reconnect

# Plain SQL, not the ORM: every login runs this query, and PostgreSQL keeps its plan prepared. An
# unknown ID and a wrong secret give the same result at the same cost: no row.
_QUERY = """
SELECT u.id, u.scopes, u.logins_per_minute, u.blocked_at, u.expires_at,
       t.tin, t.rob, t.is_active,
       s.id, s.hashed, s.hint, s.expires_at, s.revoked_at{columns}
FROM system_users u
JOIN client_secrets s ON s.system_user_id = u.id AND s.hashed = %s
JOIN taxpayers t ON t.id = u.taxpayer_id{joins}
WHERE u.client_id = %s
"""
_AS_TAXPAYER = _QUERY.format(columns="", joins="")
_ON_BEHALF_OF = _QUERY.format(
    columns=""",
       i.id, i.is_active, i.active_until, r.is_active,
       g.id, g.valid_from, g.valid_until, g.revoked_at, c.permissioncode_id""",
    joins="""
LEFT JOIN intermediaries i ON i.taxpayer_id = t.id
LEFT JOIN taxpayers r ON r.tin = %s AND r.rob = %s
LEFT JOIN granted_permissions g ON g.taxpayer_id = r.id AND g.intermediary_id = i.id
LEFT JOIN granted_permission_codes c ON c.grantedpermission_id = g.id""",
)


# Where the columns are in a row; the last three groups only in a row of _ON_BEHALF_OF.
_CLIENT, _SECRET, _INTERMEDIARY = slice(0, 8), slice(8, 13), slice(13, 16)
_HASHED, _REPRESENTED_IS_ACTIVE = 9, 16
_PERMISSION = slice(17, 22)


def load_facts(client_id: str, hashed_secret: str, on_behalf_of: TaxpayerId | None) -> Facts | None:
    """The facts about this client; None if the ID is unknown or the secret is wrong.

    `hashed_secret` is a result of `hash_secret`. Raises django.db.DatabaseError.
    """
    if on_behalf_of is None:
        rows = fetch_with_reconnect(_AS_TAXPAYER, (hashed_secret, client_id))
    else:
        rows = fetch_with_reconnect(
            _ON_BEHALF_OF, (hashed_secret, on_behalf_of.tin, on_behalf_of.rob, client_id)
        )
    # The query has compared the hashes by the column's collation; this compares their bytes.
    if not rows or not is_same_secret(hashed_secret, rows[0][_HASHED]):
        return None
    return Facts(
        _client(client_id, rows[0]),
        _secret(rows[0]),
        None if on_behalf_of is None else _represented(on_behalf_of, rows),
    )


def _client(client_id: str, row: Row) -> ClientFacts:
    id_, scopes, logins_per_minute, blocked_at, expires_at, tin, rob, is_active = row[_CLIENT]
    return ClientFacts(
        id=id_,
        client_id=client_id,
        taxpayer=TaxpayerId(tin, rob),
        taxpayer_is_active=bool(is_active),
        scopes=tuple(scopes.split()),
        logins_per_minute=logins_per_minute,
        blocked_at=_aware_or_none(blocked_at),
        expires_at=_aware_or_none(expires_at),
        intermediary=_intermediary(row),
    )


def _intermediary(row: Row) -> IntermediaryFacts | None:
    id_, is_active, active_until = row[_INTERMEDIARY] or (None, None, None)
    if id_ is None:
        return None
    return IntermediaryFacts(bool(is_active), _aware_or_none(active_until))


def _secret(row: Row) -> SecretFacts:
    id_, _hashed, hint, expires_at, revoked_at = row[_SECRET]
    return SecretFacts(id_, hint, _aware(expires_at), _aware_or_none(revoked_at))


def _represented(taxpayer: TaxpayerId, rows: list[Row]) -> RepresentedFacts:
    is_active = rows[0][_REPRESENTED_IS_ACTIVE]
    codes: dict[int, tuple[str, ...]] = {}
    moments: dict[int, tuple[datetime, datetime | None, datetime | None]] = {}
    for row in rows:  # one for each code
        id_, valid_from, valid_until, revoked_at, code = row[_PERMISSION]
        if id_ is None:
            continue
        codes[id_] = codes.get(id_, ()) + ((code,) if code else ())
        moments[id_] = (
            _aware(valid_from),
            _aware_or_none(valid_until),
            _aware_or_none(revoked_at),
        )
    return RepresentedFacts(
        taxpayer,
        None if is_active is None else bool(is_active),
        tuple(PermissionFacts(codes[id_], *moments[id_]) for id_ in codes),
    )


def _aware(moment: datetime) -> datetime:
    # PostgreSQL answers with aware moments, SQLite with naive ones in UTC.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _aware_or_none(moment: datetime | None) -> datetime | None:
    return None if moment is None else _aware(moment)
