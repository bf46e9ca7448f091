"""Loads what the registry knows about one attempt, in one query (contract 4)."""

from datetime import UTC, datetime
from typing import Any

from taxpayers.credentials import matches
from taxpayers.facts.replica import fetch_registry
from taxpayers.facts.values import (
    ClientFacts,
    Facts,
    IntermediaryFacts,
    PermissionFacts,
    RepresentedFacts,
    SecretFacts,
)
from taxpayers.identifiers import TaxpayerId

# Plain SQL, not the ORM: this is the one query of every login of a country, and PostgreSQL keeps
# its plan prepared. An unknown id and a wrong secret are the same to it: no row, at the same cost.
_CLIENT = """
SELECT u.id, u.scopes, u.logins_per_minute, u.blocked_at, u.expires_at,
       t.tin, t.rob, t.is_active,
       s.id, s.hashed, s.hint, s.expires_at, s.revoked_at{columns}
FROM system_users u
JOIN client_secrets s ON s.system_user_id = u.id AND s.hashed = %s
JOIN taxpayers t ON t.id = u.taxpayer_id{joins}
WHERE u.client_id = %s
"""
_AS_TAXPAYER = _CLIENT.format(columns="", joins="")
_ON_BEHALF_OF = _CLIENT.format(
    columns=""",
       i.id, i.is_active, i.active_until, r.is_active,
       g.id, g.valid_from, g.valid_until, g.revoked_at, c.permissioncode_id""",
    joins="""
LEFT JOIN intermediaries i ON i.taxpayer_id = t.id
LEFT JOIN taxpayers r ON r.tin = %s AND r.rob = %s
LEFT JOIN granted_permissions g ON g.taxpayer_id = r.id AND g.intermediary_id = i.id
LEFT JOIN granted_permission_codes c ON c.grantedpermission_id = g.id""",
)


def load_facts(client_id: str, hashed_secret: str, on_behalf_of: TaxpayerId | None) -> Facts | None:
    """All that is known about this client's attempt; None if the id is unknown or the secret wrong.

    `hashed_secret` is a result of `hash_secret`. Raises django.db.DatabaseError.
    """
    if on_behalf_of is None:
        rows = fetch_registry(_AS_TAXPAYER, (hashed_secret, client_id))
    else:
        rows = fetch_registry(
            _ON_BEHALF_OF, (hashed_secret, on_behalf_of.tin, on_behalf_of.rob, client_id)
        )
    # The query compared already; once more in constant time, so that no collation decides.
    if not rows or not matches(hashed_secret, rows[0][9]):
        return None
    return Facts(
        _client(client_id, rows[0]),
        _secret(rows[0]),
        None if on_behalf_of is None else _represented(on_behalf_of, rows),
    )


def _client(client_id: str, row: tuple[Any, ...]) -> ClientFacts:
    (id_, scopes, logins_per_minute, blocked_at, expires_at, tin, rob, is_active, *_) = row
    is_intermediary = len(row) > _WIDTH_AS_TAXPAYER and row[13] is not None
    return ClientFacts(
        id=id_,
        client_id=client_id,
        taxpayer=TaxpayerId(tin, rob),
        taxpayer_is_active=bool(is_active),
        scopes=tuple(scopes.split()),
        logins_per_minute=logins_per_minute,
        blocked_at=_moment(blocked_at),
        expires_at=_moment(expires_at),
        intermediary=IntermediaryFacts(bool(row[14]), _moment(row[15]))
        if is_intermediary
        else None,
    )


_WIDTH_AS_TAXPAYER = 13


def _secret(row: tuple[Any, ...]) -> SecretFacts:
    id_, _hashed, hint, expires_at, revoked_at = row[8:13]
    expiry = _moment(expires_at)
    assert expiry is not None  # noqa: S101 - the column is NOT NULL
    return SecretFacts(id_, hint, expiry, _moment(revoked_at))


def _represented(taxpayer: TaxpayerId, rows: list[tuple[Any, ...]]) -> RepresentedFacts:
    is_active = rows[0][16]
    permissions: dict[int, PermissionFacts] = {}
    for *_, id_, valid_from, valid_until, revoked_at, code in rows:
        if id_ is None:
            continue
        seen = permissions.get(id_)
        codes = (seen.codes if seen else ()) + ((code,) if code else ())
        first = _moment(valid_from)
        assert first is not None  # noqa: S101 - the column is NOT NULL
        permissions[id_] = PermissionFacts(codes, first, _moment(valid_until), _moment(revoked_at))
    return RepresentedFacts(
        taxpayer, None if is_active is None else bool(is_active), tuple(permissions.values())
    )


def _moment(value: datetime | None) -> datetime | None:
    # PostgreSQL answers with aware moments, SQLite with naive ones in UTC.
    return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value
