"""Login events on PostgreSQL: many logins in one statement, which is one round trip, one commit.

Plain SQL, so that the server keeps the plans prepared. It repeats what `tokens.rate_limits` defines
as pure functions, by the clock of the database, and is tested with the same table of cases.
"""

from collections.abc import Callable, Iterator, Sequence
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
    CountResult,
    FailedAuthentication,
    FailedLogin,
    ProofUse,
    ProofUsedBefore,
    RejectedRequest,
    TakeStatusIndex,
    TokenQuery,
    TokenRevocation,
    UsedBefore,
    Write,
)
from tokens.rate_limits.quota import WINDOW, Quota
from tokens.store.api_secret_use import use_statement
from tokens.store.postgresql_buckets import count_failures, count_rejections
from tokens.store.postgresql_event import COLUMNS, EVENT, IS_RECENT, NOW, rows_sent, statement
from tokens.store.postgresql_status_index import KEY as STATUS_KEY, names_in, take_statement
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

# `count_login`, for clients whose epoch is the one that was sent. A row that another session
# has locked is skipped: no login waits for another client's change, and no two batches wait for
# each other. It is sent again, in a statement for one client that waits for its row (see
# `tokens/store/locked_clients.py`). RETURNING shows the new values. A refused login counts, but is
# no use of its secret.
_LOCK, _LOCK_OR_SKIP = "FOR NO KEY UPDATE", "FOR NO KEY UPDATE SKIP LOCKED"
_WINDOW_SECONDS = int(WINDOW.total_seconds())
_IS_OPEN = f"""(c.window_started_at > {NOW} - interval '{_WINDOW_SECONDS} s'
        AND c.window_started_at < {NOW} + interval '{_WINDOW_SECONDS} s')"""
_WINDOW = f"CASE WHEN {_IS_OPEN} THEN c.window_started_at ELSE {NOW} END"
_SENT = {
    "client": "bigint",
    "used_secret_id": "bigint",
    '"limit"': "int",
    "epoch": "bigint",
    "status_index": "bigint",
    "status_version": "bigint",
} | EVENT
_MORE = {
    "place": "int",
    "assertion": "uuid",
    "assertion_expires_at": "timestamptz",
    "proof": "uuid",
    "proof_expires_at": "timestamptz",
    "tin": "varchar",
    "rob": "varchar",
    "index_actor": "varchar",
    "scopes": "jsonb",
    "permissions": "jsonb",
    "check_at": "timestamptz",
}
# The place of its token is where this node remembers it, also after a backup was restored. (Instead
# of looking up an EXISTS, PostgreSQL may read the whole table.)
_HAS_INDEX = """(status_index IS NULL OR status_version = (
            SELECT x.version FROM status_indexes x WHERE x.index = status_index))"""

# At most one login of each client, and none that adds rows.
_COUNT = f"""
WITH counted AS (
    UPDATE client_usage c SET
        window_started_at = {_WINDOW},
        used = CASE WHEN {_IS_OPEN} THEN c.used + 1 ELSE 1 END,
        secrets_used = CASE WHEN locked.reason = ''
            THEN c.secrets_used || jsonb_build_object(locked.used_secret_id, {_WINDOW})
            ELSE c.secrets_used END
    FROM (
        SELECT sent.* FROM {rows_sent(_SENT)} AS sent
        CROSS JOIN LATERAL (
            SELECT FROM client_usage o
            WHERE o.system_user_id = sent.client AND o.epoch = sent.epoch
            {_LOCK_OR_SKIP}
        ) AS own_row
        WHERE {IS_RECENT} AND {_HAS_INDEX}
    ) AS locked
    WHERE c.system_user_id = locked.client
        AND (locked."limit" = 0 OR c.used < locked."limit" OR NOT {_IS_OPEN})
    RETURNING locked.*, c.window_started_at, c.used
), event AS (
    INSERT INTO login_events ({COLUMNS}) SELECT {COLUMNS} FROM counted
)
SELECT {NOW}, client, window_started_at, used FROM counted"""

# Any batch: several logins of one client have its places in their order, and logins add rows: the
# index of their tokens, a used DPoP proof, a used assertion. The constraints decide between two
# nodes, whatever each sees. In this order: a login whose index is not free is repeated, with the
# same proof and assertion; a proof that was used before leaves the assertion unused; and an index
# without a token does no harm.
_COUNT_ANY = f"""
WITH sent AS MATERIALIZED (
    SELECT * FROM {rows_sent(_SENT | _MORE)} AS s
), own AS MATERIALIZED (
    SELECT own_row.* FROM (SELECT DISTINCT client FROM sent) AS clients
    CROSS JOIN LATERAL (
        SELECT c.system_user_id AS owner, c.epoch AS present_epoch, {_WINDOW} AS began_at,
            CASE WHEN {_IS_OPEN} THEN c.used ELSE 0 END AS used_then
        FROM client_usage c WHERE c.system_user_id = clients.client
        {_LOCK_OR_SKIP}
    ) AS own_row
), confirmed AS (
    SELECT sent.*, began_at, used_then,
        row_number() OVER (PARTITION BY client ORDER BY place) AS number
    FROM sent JOIN own ON owner = client AND present_epoch = epoch
    WHERE {IS_RECENT} AND (tin IS NOT NULL OR {_HAS_INDEX})
), within_limit AS MATERIALIZED (
    SELECT * FROM confirmed WHERE "limit" = 0 OR used_then + number <= "limit"
), new_index AS (
    INSERT INTO status_indexes (index, version, system_user_id, secret_id, tin, rob, actor,
        scopes, permissions, check_at)
    SELECT status_index, status_version, client AS system_user_id, used_secret_id AS secret_id,
        tin, rob, index_actor AS actor, scopes, permissions, check_at
    FROM within_limit WHERE tin IS NOT NULL AND (
        SELECT e.index FROM ended_status_indexes e WHERE e.index = status_index) IS NULL
    ORDER BY {STATUS_KEY}, place
    ON CONFLICT DO NOTHING RETURNING index, version, system_user_id AS holder
), indexed AS MATERIALIZED (
    SELECT within_limit.* FROM within_limit LEFT JOIN new_index
        ON holder = client AND index = status_index AND version = status_version
    WHERE tin IS NULL OR holder IS NOT NULL
), first_proof AS (
    INSERT INTO used_proofs (id, expires_at)
    SELECT proof, proof_expires_at FROM indexed WHERE proof IS NOT NULL ORDER BY proof
    ON CONFLICT DO NOTHING RETURNING id AS proof_id
), proved AS MATERIALIZED (
    SELECT indexed.* FROM indexed LEFT JOIN first_proof ON proof_id = proof
    WHERE proof IS NULL OR proof_id IS NOT NULL
), first_use AS (
    INSERT INTO used_assertions (id, expires_at)
    SELECT assertion, assertion_expires_at FROM proved WHERE assertion IS NOT NULL
    ORDER BY assertion
    ON CONFLICT DO NOTHING RETURNING id AS assertion_id
), counted AS MATERIALIZED (
    SELECT proved.*, used_then + row_number() OVER (PARTITION BY client ORDER BY place) AS used
    FROM proved LEFT JOIN first_use ON assertion_id = assertion
    WHERE assertion IS NULL OR assertion_id IS NOT NULL
), stored AS (
    UPDATE client_usage c SET window_started_at = total.began_at, used = total.used,
        secrets_used = c.secrets_used || total.secrets
    FROM (
        SELECT client, began_at, max(used) AS used, coalesce(jsonb_object_agg(
            used_secret_id, began_at) FILTER (WHERE reason = ''), '{{}}') AS secrets
        FROM counted GROUP BY client, began_at
    ) AS total WHERE c.system_user_id = total.client
), event AS (
    INSERT INTO login_events ({COLUMNS}) SELECT {COLUMNS} FROM counted
)
SELECT {NOW}, place, began_at, used, NULL AS used_before FROM counted
UNION ALL SELECT {NOW}, place, NULL, NULL, 'assertion'
FROM proved LEFT JOIN first_use ON assertion_id = assertion
WHERE assertion IS NOT NULL AND assertion_id IS NULL
UNION ALL SELECT {NOW}, place, NULL, NULL, 'proof'
FROM indexed LEFT JOIN first_proof ON proof_id = proof
WHERE proof IS NOT NULL AND proof_id IS NULL"""
_USED_BEFORE: dict[str, type[UsedBefore | ProofUsedBefore]] = {
    "assertion": UsedBefore,
    "proof": ProofUsedBefore,
}

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
    return replace(made, sql=made.sql.replace(_LOCK_OR_SKIP, _LOCK)) if waits else made


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


def _count(logins: Sequence[CountedLogin]) -> Statement[list[CountResult]]:
    clients = [login.system_user_id for login in logins]
    adds_rows = any(login.assertion or login.proof or login.new_index for login in logins)
    is_simple = not adds_rows and len(set(clients)) == len(clients)
    keys: Sequence[int] = clients if is_simple else range(len(logins))

    def parse(rows: list[Row]) -> list[CountResult]:
        found = {key: counted for _now, key, *counted in rows}
        return [
            _counted(login.limit, *found.get(key, ()))
            for key, login in zip(keys, logins, strict=True)
        ]

    if is_simple:
        return statement(_COUNT, [_sent(login) for login in logins], parse)
    sent = [(*_sent(login), place, *_rows_added(login)) for place, login in enumerate(logins)]
    return statement(_COUNT_ANY, sent, parse)


def _sent(login: CountedLogin) -> tuple[object, ...]:
    """This login as a row of the parameter: the columns of `_SENT`."""
    return (
        login.system_user_id,
        login.secret_id,
        login.limit,
        login.epoch,
        login.status_index,
        login.status_version,
        *login.event,
    )


def _rows_added(login: CountedLogin) -> Iterator[object]:
    """The columns of `_MORE` behind its place."""
    yield from login.assertion or (None, None)
    yield from login.proof or (None, None)
    if (index := login.new_index) is not None:
        yield from (index.tin, index.rob, index.actor, *names_in(index).values(), index.check_at)


def _counted(
    limit: int,
    window_started_at: datetime | None = None,
    used: int = 0,
    used_before: str | None = None,
) -> CountResult:
    if used_before:
        return _USED_BEFORE[used_before]()
    return None if window_started_at is None else Quota(limit, used, window_started_at)


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
    CountedLogin: _count,
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
