"""Counts authenticated logins on PostgreSQL: those that wait in one statement, with their events.

It repeats `count_login` of `tokens.rate_limits.quota`, and is tested with the same table of cases.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from taxpayers.sql import Row, Statement
from tokens.calls import CountedLogin, CountResult, ProofUsedBefore, UsedBefore
from tokens.rate_limits.quota import WINDOW, Quota
from tokens.store.postgresql_event import COLUMNS, EVENT, IS_RECENT, NOW, rows_sent, statement
from tokens.store.postgresql_status_index import KEY as STATUS_KEY, names_in

# A row that another session has locked is skipped: no login waits for another client's change, and
# no two batches wait for each other. It is sent again, in a statement for one client that waits for
# its row (see `tokens/store/locked_clients.py`).
LOCK, LOCK_OR_SKIP = "FOR NO KEY UPDATE", "FOR NO KEY UPDATE SKIP LOCKED"
_WINDOW_SECONDS = int(WINDOW.total_seconds())
_IS_OPEN = f"""(c.window_started_at > {NOW} - interval '{_WINDOW_SECONDS} s'
            AND c.window_started_at < {NOW} + interval '{_WINDOW_SECONDS} s')"""
# Of a client's row `c`, once it is locked.
_COUNTER = f"""CASE WHEN {_IS_OPEN} THEN c.window_started_at ELSE {NOW} END AS began_at,
            CASE WHEN {_IS_OPEN} THEN c.used ELSE 0 END AS used_then"""
# The place of its token is where this node remembers it, also after a backup was restored. (Instead
# of looking up an EXISTS, PostgreSQL may read the whole table.)
_HAS_INDEX = """(status_index IS NULL OR status_version = (
            SELECT x.version FROM status_indexes x WHERE x.index = status_index))"""
_SENT = {
    "client": "bigint",
    "used_secret_id": "bigint",
    '"limit"': "int",
    "epoch": "bigint",
    "status_index": "bigint",
    "status_version": "bigint",
    "place": "int",
} | EVENT


class _Added(NamedTuple):
    """A row that some logins add: how it is sent, and the SQL after which the others are left."""

    columns: Mapping[str, str]
    of: Callable[[CountedLogin], Sequence[object] | None]
    sql: str
    refused: str = ""  # SQL of the others, where they are told


_NEW_INDEX = f"""new_index AS (
    INSERT INTO status_indexes (index, version, system_user_id, secret_id, tin, rob, actor,
        scopes, permissions, check_at)
    SELECT status_index, status_version, client AS system_user_id, used_secret_id AS secret_id,
        tin, rob, index_actor AS actor, scopes, permissions, check_at
    FROM {{before}} WHERE tin IS NOT NULL AND (
        SELECT e.index FROM ended_status_indexes e WHERE e.index = status_index) IS NULL
    ORDER BY {STATUS_KEY}, place
    ON CONFLICT DO NOTHING RETURNING index, version, system_user_id AS holder
), {{after}} AS MATERIALIZED (
    SELECT {{before}}.* FROM {{before}} LEFT JOIN new_index
        ON holder = client AND index = status_index AND version = status_version
    WHERE tin IS NULL OR holder IS NOT NULL
)"""


def _index_of(login: CountedLogin) -> Sequence[object] | None:
    index = login.new_index
    if index is None:
        return None
    return (index.tin, index.rob, index.actor, *names_in(index).values(), index.check_at)


def _used_once(name: str, of: Callable[[CountedLogin], Sequence[object] | None]) -> _Added:
    sql = f"""first_{name} AS (
    INSERT INTO used_{name}s (id, expires_at)
    SELECT {name}, {name}_expires_at FROM {{before}} WHERE {name} IS NOT NULL ORDER BY {name}
    ON CONFLICT DO NOTHING RETURNING id AS {name}_id
), {{after}} AS MATERIALIZED (
    SELECT {{before}}.* FROM {{before}} LEFT JOIN first_{name} ON {name}_id = {name}
    WHERE {name} IS NULL OR {name}_id IS NOT NULL
)"""
    refused = f"""
UNION ALL SELECT {NOW}, place, NULL, NULL, '{name}'
FROM {{before}} LEFT JOIN first_{name} ON {name}_id = {name}
WHERE {name} IS NOT NULL AND {name}_id IS NULL"""
    columns = {name: "uuid", f"{name}_expires_at": "timestamptz"}
    return _Added(columns, of, sql, refused)


# The constraints decide between two nodes, whatever each sees. In this order: a login whose index
# is not free is repeated, with the same proof and assertion; a proof that was used before leaves
# the assertion unused; and an index without a token does no harm.
_ADDED = {
    "index": _Added(
        {
            "tin": "varchar",
            "rob": "varchar",
            "index_actor": "varchar",
            "scopes": "jsonb",
            "permissions": "jsonb",
            "check_at": "timestamptz",
        },
        _index_of,
        _NEW_INDEX,
    ),
    "proof": _used_once("proof", lambda login: login.proof),
    "assertion": _used_once("assertion", lambda login: login.assertion),
}
_USED_BEFORE: dict[str, type[UsedBefore | ProofUsedBefore]] = {
    "assertion": UsedBefore,
    "proof": ProofUsedBefore,
}

# Those within their limit, for clients whose epoch is the one that was sent: one of each client.
_FIRST = "within_limit"
_ONE_EACH = f"""{_FIRST} AS MATERIALIZED (
    SELECT sent.*, began_at, used_then + 1 AS used FROM {{sent}} AS sent
    CROSS JOIN LATERAL (
        SELECT {_COUNTER}
        FROM client_usage c WHERE c.system_user_id = sent.client AND c.epoch = sent.epoch
        {LOCK_OR_SKIP}
    ) AS own_row
    WHERE {IS_RECENT} AND {{has_index}} AND ("limit" = 0 OR used_then < "limit")
)"""
# A refused login counts, but is no use of its secret.
_STORE_ONE_EACH = """stored AS (
    UPDATE client_usage c SET window_started_at = began_at, used = {left}.used,
        secrets_used = CASE WHEN reason = ''
            THEN c.secrets_used || jsonb_build_object(used_secret_id, began_at)
            ELSE c.secrets_used END
    FROM {left} WHERE c.system_user_id = client
)"""
# Several of a client: they have their places in their order.
_SEVERAL = f"""sent AS MATERIALIZED (
    SELECT * FROM {{sent}} AS s
), own AS MATERIALIZED (
    SELECT own_row.* FROM (SELECT DISTINCT client FROM sent) AS clients
    CROSS JOIN LATERAL (
        SELECT c.system_user_id AS owner, c.epoch AS present_epoch, {_COUNTER}
        FROM client_usage c WHERE c.system_user_id = clients.client
        {LOCK_OR_SKIP}
    ) AS own_row
), confirmed AS (
    SELECT sent.*, began_at, used_then,
        row_number() OVER (PARTITION BY client ORDER BY place) AS number
    FROM sent JOIN own ON owner = client AND present_epoch = epoch
    WHERE {IS_RECENT} AND {{has_index}}
), {_FIRST} AS MATERIALIZED (
    SELECT * FROM confirmed WHERE "limit" = 0 OR used_then + number <= "limit"
)"""
_STORE_SEVERAL = """counted AS MATERIALIZED (
    SELECT *, used_then + row_number() OVER (PARTITION BY client ORDER BY place) AS used
    FROM {left}
), stored AS (
    UPDATE client_usage c SET window_started_at = total.began_at, used = total.used,
        secrets_used = c.secrets_used || total.secrets
    FROM (
        SELECT client, began_at, max(used) AS used, coalesce(jsonb_object_agg(
            used_secret_id, began_at) FILTER (WHERE reason = ''), '{{}}') AS secrets
        FROM counted GROUP BY client, began_at
    ) AS total WHERE c.system_user_id = total.client
)"""


@cache
def _statement_of(added: tuple[str, ...], *, has_several: bool) -> str:
    """SQL for a batch of which logins add these rows, or several are of one client.

    At most one use of an assertion or a proof. Each part costs, also if it has nothing to do.
    """
    columns = _SENT | {name: kind for each in added for name, kind in _ADDED[each].columns.items()}
    has_index = f"(tin IS NOT NULL OR {_HAS_INDEX})" if "index" in added else _HAS_INDEX
    begin, store = (_SEVERAL, _STORE_SEVERAL) if has_several else (_ONE_EACH, _STORE_ONE_EACH)
    parts, refused, left = [begin.format(sent=rows_sent(columns), has_index=has_index)], "", _FIRST
    for each in added:
        before, left = left, f"with_{each}"
        parts.append(_ADDED[each].sql.format(before=before, after=left))
        refused += _ADDED[each].refused.format(before=before)
    counted = "counted" if has_several else left
    event = f"event AS (INSERT INTO login_events ({COLUMNS}) SELECT {COLUMNS} FROM {counted})"
    return f"""WITH {", ".join([*parts, store.format(left=left), event])}
SELECT {NOW}, place, began_at, used, NULL AS used_before FROM {counted}{refused}"""


def count_logins(logins: Sequence[CountedLogin]) -> Statement[list[CountResult]]:
    """Counts these logins, in their order, and stores them with what they add."""
    added = tuple(name for name, one in _ADDED.items() if any(map(one.of, logins)))
    has_several = len({login.system_user_id for login in logins}) < len(logins)

    def parse(rows: list[Row]) -> list[CountResult]:
        found = {place: counted for _now, place, *counted in rows}
        return [_counted(login.limit, *found.get(place, ())) for place, login in enumerate(logins)]

    sent = [_sent(place, login, added) for place, login in enumerate(logins)]
    return statement(_statement_of(added, has_several=has_several), sent, parse)


def _sent(place: int, login: CountedLogin, added: tuple[str, ...]) -> list[object]:
    """This login as a row of the parameter."""
    row: list[object] = [
        login.system_user_id,
        login.secret_id,
        login.limit,
        login.epoch,
        login.status_index,
        login.status_version,
        place,
        *login.event,
    ]
    for each in added:
        row += _ADDED[each].of(login) or [None] * len(_ADDED[each].columns)
    return row


def _counted(
    limit: int,
    window_started_at: datetime | None = None,
    used: int = 0,
    used_before: str | None = None,
) -> CountResult:
    if used_before:
        return _USED_BEFORE[used_before]()
    return None if window_started_at is None else Quota(limit, used, window_started_at)
