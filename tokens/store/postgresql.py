"""Login events on PostgreSQL: many logins in one statement, which is one round trip, one commit.

Plain SQL, so that the server keeps the plans prepared. It repeats what `tokens.rate_limits` defines
as pure functions, by the clock of the database, and is tested with the same table of cases.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from taxpayers.facts.query import facts_statement
from taxpayers.facts.values import FactsQuery
from taxpayers.sql import Row, Statement
from tokens.calls import (
    ApiSecretUse,
    AssertionUse,
    CountedLogin,
    FailedAuthentication,
    FailedLogin,
    ProofUse,
    RejectedRequest,
    TakeStatusIndex,
    TokenQuery,
    TokenRevocation,
    Write,
)
from tokens.rate_limits.quota import Quota
from tokens.store.api_secret_use import use_statement
from tokens.store.postgresql_buckets import count_failures, count_rejections
from tokens.store.postgresql_count import LOCK, LOCK_OR_SKIP, count_logins
from tokens.store.postgresql_event import NOW, statement
from tokens.store.postgresql_status_index import take_statement
from tokens.store.token_query import token_statement
from tokens.store.used_once import SOME_EXPIRED

# A session that ends while its commit waits for a synchronous standby leaves a row that everybody
# sees and that a failover would lose. So what finds such a row, and writes nothing, writes an empty
# message: its own commit waits until the standby has that, and all that was committed before.
_CONFIRMED = "pg_logical_emit_message(true, 'identity', '') IS NOT NULL"
_STORED = f"""
SELECT statement_timestamp(), e.id, c.window_started_at, c.used, {_CONFIRMED}
FROM login_events e LEFT JOIN client_usage c ON c.system_user_id = e.system_user_id
WHERE e.id = ANY(%s)"""

_A_MINUTE_AGO, _SKIP = f"{NOW} - interval '1 min'", "FOR UPDATE SKIP LOCKED"
_USE = f"""
WITH first_use AS (
    INSERT INTO {{table}} (id, expires_at)
    SELECT id, expires_at
    FROM json_to_recordset(%s::json) AS s(id uuid, expires_at timestamptz) ORDER BY id
    ON CONFLICT DO NOTHING RETURNING id
), forgotten AS ({SOME_EXPIRED.format(table="{table}", before=_A_MINUTE_AGO, lock=_SKIP)})
SELECT {NOW}, id FROM (VALUES (NULL::uuid)) AS clock(id)
UNION ALL SELECT {NOW}, id FROM first_use"""
_TABLES = {AssertionUse: "used_assertions", ProofUse: "used_proofs"}

# One that is revoked twice stays as it is, and perhaps the first time was not confirmed.
_REVOKE = f"""
WITH sent AS (
    SELECT * FROM json_to_recordset(%s::json)
        AS s(jti uuid, expires_at timestamptz, status_index bigint)
), revoked AS (
    INSERT INTO revoked_tokens (jti, expires_at, revoked_at)
    SELECT jti, expires_at, {NOW} FROM sent WHERE jti IS NOT NULL
    ON CONFLICT DO NOTHING
)
SELECT {NOW}, end_status_indexes(ARRAY(
    SELECT status_index FROM sent WHERE status_index IS NOT NULL)), {_CONFIRMED}"""


def statement_for(calls: Sequence[Any], *, waits: bool = False) -> Statement[list[Any]]:
    """One statement for calls of one kind; its results are in the order of the calls.

    At most one failure or request of a bucket, and one use of an assertion or a proof. `waits`: for
    rows of clients that another session has locked. Such a statement must be for one client, or it
    would hold up others, and two could wait for each other.
    """
    made = _STATEMENTS[type(calls[0])](calls)
    return replace(made, sql=made.sql.replace(LOCK_OR_SKIP, LOCK)) if waits else made


def results_of_stored(calls: Sequence[Write]) -> Statement[dict[Write, Any]]:
    """The results of those of these calls that were stored before."""
    by_id = {call.event.id: call for call in calls}

    def parse(rows: list[Row]) -> dict[Write, Any]:
        return {
            by_id[id_]: _result(by_id[id_], *counter) for _now, id_, *counter, _is_confirmed in rows
        }

    return Statement(_STORED, (list(by_id),), parse)


def _result(call: Write, window_started_at: datetime, used: int) -> Quota | None:
    return Quota(call.limit, used, window_started_at) if isinstance(call, CountedLogin) else None


def _use(uses: Sequence[AssertionUse | ProofUse]) -> Statement[list[bool]]:
    def parse(rows: list[Row]) -> list[bool]:
        first = {id_ for _now, id_ in rows}
        return [use.id in first for use in uses]

    sql = _USE.format(table=_TABLES[type(uses[0])])
    return statement(sql, [use._asdict() for use in uses], parse)


def _revoke(rows: Sequence[TokenRevocation]) -> Statement[list[None]]:
    return statement(_REVOKE, [row._asdict() for row in rows], lambda _rows: [None] * len(rows))


_STATEMENTS: dict[type, Callable[[Sequence[Any]], Statement[list[Any]]]] = {
    FactsQuery: facts_statement,
    CountedLogin: count_logins,
    FailedLogin: count_failures,
    FailedAuthentication: count_failures,
    TokenQuery: token_statement,
    TokenRevocation: _revoke,
    AssertionUse: _use,
    ProofUse: _use,
    TakeStatusIndex: take_statement,
    ApiSecretUse: use_statement,
    RejectedRequest: count_rejections,
}
