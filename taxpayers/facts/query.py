"""Reads the facts that decisions need from the registry: one statement for many clients."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from django.db import connection
from msgspec.structs import replace

from taxpayers.certificates import TLS_CLIENT_AUTH, is_certificate_lookup
from taxpayers.client_keys import PRIVATE_KEY_JWT
from taxpayers.credentials import is_same_secret
from taxpayers.facts.values import (
    ClientFacts,
    CredentialFacts,
    Facts,
    FactsQuery,
    IntermediaryFacts,
    PermissionFacts,
    Reading,
    RepresentedFacts,
    StatusFacts,
)
from taxpayers.identifiers import TaxpayerId
from taxpayers.sql import Row, Statement, fetch, fetch_with_reconnect

# Plain SQL, not the ORM: PostgreSQL keeps its plan prepared. An unknown id and a wrong secret give
# the same result at the same cost: the clock, and nothing else. (Joins that are nested in brackets
# would be shorter, but SQLite works them out for the whole registry.)
#
# `u.allowed_taxpayers` can be long, so it is compared here and not read. (`replace` is known to
# both engines, and exact.)
#
# The columns and joins of a client `u` that has logged in with the secret `s`, and of the taxpayer
# with the number `q.tin` and `q.rob`: other statements find the client in another way. Without a
# secret that matches, what is joined to is NULL, and PostgreSQL looks up nothing more.
FACT_COLUMNS = """q.number, u.id, u.scopes, u.logins_per_minute, u.blocked_at, u.expires_at,
       t.tin, t.rob, t.is_active,
       s.id, s.lookup, s.hint, s.expires_at, s.revoked_at,
       c.epoch, c.window_started_at, c.used,
       i.id, i.is_active, i.active_until, r.is_active,
       g.id, g.valid_from, g.valid_until, g.revoked_at, p.permissioncode_id,
       s.public_jwk,
       u.token_binding,
       s.allowed_networks,
       u.allowed_permissions,
       u.allowed_taxpayers <> '',
       u.allowed_taxpayers = '' OR replace(' ' || u.allowed_taxpayers || ' ', ' ' || q.tin
           || CASE WHEN q.rob = '' THEN '' ELSE ':' || q.rob END || ' ', '')
           <> ' ' || u.allowed_taxpayers || ' ',
       u.only_on_behalf"""
FACT_JOINS = """
LEFT JOIN taxpayers t ON t.id = CASE WHEN s.id IS NOT NULL THEN u.taxpayer_id END
LEFT JOIN client_usage c ON c.system_user_id = s.system_user_id
LEFT JOIN intermediaries i ON i.taxpayer_id = t.id
LEFT JOIN taxpayers r ON r.tin = q.tin AND r.rob = q.rob
LEFT JOIN granted_permissions g ON g.taxpayer_id = r.id AND g.intermediary_id = i.id
LEFT JOIN granted_permission_codes p ON p.grantedpermission_id = g.id"""
# Whatever is stored, only what the client's login method uses is its credential.
CREDENTIAL_FITS = f"""
    AND (s.public_jwk <> '') = (u.token_endpoint_auth_method = '{PRIVATE_KEY_JWT}')
    AND (s.certificate_name IS NOT NULL) = (u.token_endpoint_auth_method = '{TLS_CLIENT_AUTH}')"""
# The index of the tokens that such a login gets.
_STATUS_COLUMNS = 'x."index", x.version, CAST(x.scopes AS text), CAST(x.permissions AS text)'
_STATUS_JOIN = """
LEFT JOIN status_indexes x ON x.system_user_id = s.system_user_id AND x.secret_id = s.id
    AND x.tin = coalesce(q.tin, t.tin) AND x.rob = coalesce(q.rob, t.rob)
    AND x.actor = CASE WHEN q.tin IS NULL THEN '' WHEN t.rob = '' THEN t.tin
        ELSE t.tin || ':' || t.rob END"""
_QUERY = f"""
SELECT {{clock}}, {FACT_COLUMNS}, {_STATUS_COLUMNS}
FROM {{queries}}
LEFT JOIN system_users u ON u.client_id = q.client_id
LEFT JOIN credentials s ON s.system_user_id = u.id AND s.lookup = q.lookup{CREDENTIAL_FITS}
{FACT_JOINS}{_STATUS_JOIN}"""
_POSTGRESQL = _QUERY.format(
    clock="statement_timestamp()",
    queries="json_to_recordset(%s::json)"
    " AS q(number int, client_id varchar, lookup varchar, tin varchar, rob varchar)",
)
# SQLite runs in this process, so its clock is that of this process.
_SQLITE = _QUERY.format(
    clock="NULL",
    queries="(SELECT 0 AS number, %s AS client_id, %s AS lookup, %s AS tin, %s AS rob) AS q",
)
# Where the columns are in a row.
_CLOCK, _NUMBER, _CLIENT, _SECRET = 0, 1, slice(2, 10), slice(10, 15)
_LOOKUP, _EPOCH, _COUNTER, _INTERMEDIARY = 11, 15, slice(16, 18), slice(18, 21)
_REPRESENTED_IS_ACTIVE, _PERMISSION, _PUBLIC_JWK = 21, slice(22, 27), 27
_TOKEN_BINDING = 28
_ALLOWED_NETWORKS, _ALLOWED, _IS_ALLOWED, _ONLY_ON_BEHALF = 29, slice(30, 32), 32, 33
_STATUS = slice(-4, None)


def load_facts(query: FactsQuery) -> Reading:
    """The facts of one client, now. Raises django.db.DatabaseError."""
    if connection.vendor != "postgresql":
        return read_facts_from_sqlite(query)
    statement = facts_statement([query])
    return statement.parse(fetch_with_reconnect(statement.sql, statement.parameters))[0]


def facts_statement(queries: Sequence[FactsQuery]) -> Statement[list[Reading]]:
    """Reads the facts of all these clients at one moment, in the order of the queries."""
    sent = [
        {
            "number": number,
            "client_id": query.client_id,
            "lookup": query.lookup,
            "tin": query.on_behalf_of and query.on_behalf_of.tin,
            "rob": query.on_behalf_of and query.on_behalf_of.rob,
        }
        for number, query in enumerate(queries)
    ]

    def parse(rows: list[Row]) -> list[Reading]:
        of_query: list[list[Row]] = [[] for _ in queries]
        for row in rows:
            of_query[row[_NUMBER]].append(row)
        return [_reading(query, rows) for query, rows in zip(queries, of_query, strict=True)]

    return Statement(_POSTGRESQL, (msgspec.json.encode(sent).decode(),), parse)


def read_facts_from_sqlite(query: FactsQuery) -> Reading:
    """The same from SQLite, in this process. Raises django.db.DatabaseError."""
    represented = query.on_behalf_of
    tin, rob = (represented.tin, represented.rob) if represented else (None, None)
    parameters = (query.client_id, query.lookup, tin, rob)
    return _reading(query, fetch(_SQLITE, parameters))


def _reading(query: FactsQuery, rows: list[Row]) -> Reading:
    at = rows[0][_CLOCK] or datetime.now(UTC)
    row = rows[0]
    # The query has compared them by the column's collation; this compares their bytes.
    if not is_same_secret(query.lookup, row[_LOOKUP] or ""):
        return Reading(at, None)
    window_started_at, used = row[_COUNTER]
    facts = facts_of(query.client_id, query.on_behalf_of, rows)
    counter = (aware(window_started_at), used)
    return Reading(at, replace(facts, status=status_facts(*row[_STATUS])), counter)


def status_facts(
    index: int | None, version: int, scopes: str, permissions: str
) -> StatusFacts | None:
    """The index in a row, whose other columns are JSON objects; None: there is none."""
    if index is None:
        return None
    names = (tuple(sorted(_names(each))) for each in (scopes, permissions))
    return StatusFacts(index, version, *names)


def facts_of(client_id: str, represented: TaxpayerId | None, rows: list[Row]) -> Facts:
    """The facts in the rows of one client, which begin with a clock and `FACT_COLUMNS`."""
    return Facts(
        _client(client_id, rows[0]),
        _secret(rows[0]),
        None if represented is None else _represented(represented, rows),
        rows[0][_EPOCH],
    )


def _client(client_id: str, row: Row) -> ClientFacts:
    id_, scopes, logins_per_minute, blocked_at, expires_at, tin, rob, is_active = row[_CLIENT]
    allowed_permissions, has_allowed_taxpayers = row[_ALLOWED]
    return ClientFacts(
        id=id_,
        client_id=client_id,
        taxpayer=TaxpayerId(tin, rob),
        taxpayer_is_active=bool(is_active),
        scopes=tuple(scopes.split()),
        logins_per_minute=logins_per_minute,
        blocked_at=aware_or_none(blocked_at),
        expires_at=aware_or_none(expires_at),
        intermediary=_intermediary(row),
        token_binding=row[_TOKEN_BINDING],
        allowed_permissions=tuple(allowed_permissions.split()),
        has_allowed_taxpayers=bool(has_allowed_taxpayers),
        only_on_behalf=bool(row[_ONLY_ON_BEHALF]),
    )


def _intermediary(row: Row) -> IntermediaryFacts | None:
    id_, is_active, active_until = row[_INTERMEDIARY]
    if id_ is None:
        return None
    return IntermediaryFacts(bool(is_active), aware_or_none(active_until))


def _secret(row: Row) -> CredentialFacts:
    id_, lookup, hint, expires_at, revoked_at = row[_SECRET]
    return CredentialFacts(
        id_,
        hint,
        aware(expires_at),
        aware_or_none(revoked_at),
        row[_PUBLIC_JWK],
        tuple(row[_ALLOWED_NETWORKS].split()),
        is_certificate_lookup(lookup),
    )


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
            aware(valid_from),
            aware_or_none(valid_until),
            aware_or_none(revoked_at),
        )
    return RepresentedFacts(
        taxpayer,
        None if is_active is None else bool(is_active),
        tuple(PermissionFacts(codes[id_], *moments[id_]) for id_ in codes),
        bool(rows[0][_IS_ALLOWED]),
    )


def aware(moment: datetime) -> datetime:
    """A moment as a database answers: PostgreSQL with aware ones, SQLite with naive ones in UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def aware_or_none(moment: datetime | None) -> datetime | None:
    """As `aware`."""
    return None if moment is None else aware(moment)


_names = msgspec.json.Decoder(dict[str, int]).decode
