"""Reads what the database knows of a token and of the API that asks: one statement for many."""

from base64 import urlsafe_b64decode
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import msgspec

from taxpayers.credentials import is_same_secret
from taxpayers.facts.query import (
    CREDENTIAL_FITS,
    FACT_COLUMNS,
    FACT_JOINS,
    aware,
    aware_or_none,
    facts_of,
)
from taxpayers.facts.values import CredentialFacts
from taxpayers.identifiers import TaxpayerId
from taxpayers.sql import Row, Statement, fetch
from taxpayers.value import Value
from tokens.access_tokens.claims import index_in_list
from tokens.access_tokens.status import TokenFacts
from tokens.calls import TokenQuery

# The login event has the id of the token, and leads to the secret. A caller whose secret does not
# match gets no further than that, at the same cost whether its id exists or not.
#
# The row of the token's index is there until something ends its tokens, and until they have expired
# the index is not used again (`REUSED_AFTER`). A backup that was restored may have the same number
# for another client or secret.
_QUERY = f"""
SELECT {{clock}}, {FACT_COLUMNS},
       a.client_id, a.name, a.audience, a.is_active,
       h.id, h.lookup, h.hint, h.expires_at, h.revoked_at,
       v.jti, k.compromised_at, x."index", u.client_id
FROM {{queries}}
LEFT JOIN protected_apis a ON a.client_id = q.client_id
LEFT JOIN protected_api_secrets h ON h.protected_api_id = a.id AND h.lookup = q.lookup
LEFT JOIN login_events e ON e.id = q.jti AND e.reason = ''
    AND (q.client_id IS NULL OR h.id IS NOT NULL)
LEFT JOIN revoked_tokens v ON v.jti = e.id
LEFT JOIN signing_keys k ON k.kid = e.kid
LEFT JOIN system_users u ON u.id = e.system_user_id
LEFT JOIN credentials s ON s.id = e.secret_id AND s.system_user_id = u.id{CREDENTIAL_FITS}
{FACT_JOINS}
LEFT JOIN status_indexes x ON x."index" = q.status_index
    AND x.system_user_id = e.system_user_id AND x.secret_id = e.secret_id"""
_POSTGRESQL = _QUERY.format(
    clock="statement_timestamp()",
    queries="json_to_recordset(%s::json)"
    " AS q(number int, client_id varchar, lookup varchar, jti uuid, tin varchar, rob varchar,"
    " status_index bigint)",
)
_SQLITE = _QUERY.format(
    clock="NULL",
    queries="(SELECT 0 AS number, %s AS client_id, %s AS lookup, %s AS jti,"
    " %s AS tin, %s AS rob, %s AS status_index) AS q",
)
# Where the columns are in a row.
_NUMBER, _SECRET_ID = 1, 10
_API, _API_SECRET = slice(-13, -9), slice(-9, -4)
_JTI, _COMPROMISED_AT, _INDEX, _CLIENT_ID = -4, -3, -2, -1
_JTI_LENGTH, _LONGEST = 36, 64


class ApiFacts(Value):
    """A protected API, and the secret of it that matched."""

    client_id: str
    name: str
    audience: str
    is_active: bool
    secret: CredentialFacts


class TokenReading(Value):
    """What is known at the moment `at`, by the database's clock."""

    at: datetime
    token: TokenFacts
    caller: ApiFacts | None = None  # None: its id is unknown or its secret is wrong


class _Taxpayer(msgspec.Struct):
    tin: str
    rob: str = ""


class _Place(msgspec.Struct):
    uri: str
    idx: int


class _Status(msgspec.Struct):
    status_list: _Place


class _Payload(msgspec.Struct):
    jti: str
    taxpayer: _Taxpayer
    status: _Status
    act: dict[str, str] | None = None


_decode = msgspec.json.Decoder(_Payload).decode


def token_query(token: str, client_id: str | None = None, lookup: str | None = None) -> TokenQuery:
    """The query for this token as sent, whatever it is; it finds nothing for what is no token."""
    try:
        payload = token.split(".")[1]
        claims = _decode(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        jti = UUID(claims.jti) if len(claims.jti) == _JTI_LENGTH else None
        index = index_in_list(claims.status.status_list.uri, claims.status.status_list.idx)
    except (LookupError, ValueError, msgspec.MsgspecError, RecursionError):
        return TokenQuery(None, None, None, client_id, lookup)
    named = TaxpayerId(claims.taxpayer.tin, claims.taxpayer.rob)
    if claims.act is None or not _can_be_sent(named):
        return TokenQuery(jti, None, index, client_id, lookup)
    return TokenQuery(jti, named, index, client_id, lookup)


def _can_be_sent(taxpayer: TaxpayerId) -> bool:
    # A database takes no NUL, and no half of a character; our own tokens have neither.
    return all(
        len(text) <= _LONGEST and text.isascii() and text.isprintable()
        for text in (taxpayer.tin, taxpayer.rob)
    )


def token_statement(queries: Sequence[TokenQuery]) -> Statement[list[TokenReading]]:
    """Reads all of these at one moment, in the order of the queries."""
    sent = [
        {
            "number": number,
            "client_id": query.client_id,
            "lookup": query.lookup,
            "jti": query.jti,
            "tin": query.represented and query.represented.tin,
            "rob": query.represented and query.represented.rob,
            "status_index": query.status_index,
        }
        for number, query in enumerate(queries)
    ]

    def parse(rows: list[Row]) -> list[TokenReading]:
        of_query: list[list[Row]] = [[] for _ in queries]
        for row in rows:
            of_query[row[_NUMBER]].append(row)
        return [_reading(query, rows) for query, rows in zip(queries, of_query, strict=True)]

    return Statement(_POSTGRESQL, (msgspec.json.encode(sent).decode(),), parse)


def read_token_from_sqlite(query: TokenQuery) -> TokenReading:
    """The same from SQLite, in this process. Raises django.db.DatabaseError."""
    represented, jti = query.represented, query.jti
    tin, rob = (represented.tin, represented.rob) if represented else (None, None)
    asked = (query.client_id, query.lookup)
    parameters = (*asked, jti and jti.hex, tin, rob, query.status_index)
    return _reading(query, fetch(_SQLITE, parameters))


def _reading(query: TokenQuery, rows: list[Row]) -> TokenReading:
    row = rows[0]
    is_recorded = row[_SECRET_ID] is not None
    login = facts_of(row[_CLIENT_ID], query.represented, rows) if is_recorded else None
    facts = TokenFacts(
        login,
        has_index=row[_INDEX] is not None,
        is_revoked=row[_JTI] is not None,
        key_is_compromised=row[_COMPROMISED_AT] is not None,
    )
    return TokenReading(row[0] or datetime.now(UTC), facts, _caller(query, row))


def _caller(query: TokenQuery, row: Row) -> ApiFacts | None:
    client_id, name, audience, is_active = row[_API]
    secret_id, lookup, hint, expires_at, revoked_at = row[_API_SECRET]
    # The query has compared them by the column's collation; this compares their bytes.
    if not is_same_secret(query.lookup or "", lookup or "") or secret_id is None:
        return None
    secret = CredentialFacts(secret_id, hint, aware(expires_at), aware_or_none(revoked_at))
    return ApiFacts(client_id, name, audience, bool(is_active), secret)
