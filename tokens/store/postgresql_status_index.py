"""Takes indexes of the status lists on PostgreSQL: one statement for many."""

from collections.abc import Sequence
from datetime import timedelta

from taxpayers.facts.query import status_facts
from taxpayers.sql import Row, Statement
from tokens.calls import TakenIndex, TakeStatusIndex
from tokens.status_lists.format import REUSED_AFTER
from tokens.store.postgresql_event import NOW, statement

# Which tokens share a row. Statements add rows in this order, so that no two wait for each other.
KEY = "system_user_id, secret_id, tin, rob, actor"

# The oldest of those whose tokens have all expired, or else a new one; more of them for the logins
# that follow in this process. A row that is there stays, for more tokens. (The index that was
# taken for it, and one that a process has reserved when it ends, remain unused, for good.)
#
# Its next check is that of the decision that needs it. The epoch confirms that the facts of that
# decision are still true, and its lock makes a change wait, which then has the row checked. Nothing
# is taken for a client that has changed, nor where another session has it locked: that call is sent
# again, as that of a login (`tokens/store/postgresql_count.py`).
_TAKE = f"""
WITH sent AS MATERIALIZED (
    SELECT row_number() OVER () AS place, s.* FROM json_to_recordset(%s::json)
        AS s(system_user_id bigint, secret_id bigint, tin varchar, rob varchar, actor varchar,
            scopes jsonb, permissions jsonb, epoch bigint, check_at timestamptz, reserve int)
    CROSS JOIN LATERAL (
        SELECT FROM client_usage c
        WHERE c.system_user_id = s.system_user_id AND c.epoch = s.epoch
        FOR NO KEY UPDATE SKIP LOCKED) AS own_row
), wanted AS (
    SELECT count(*) + coalesce(max(reserve), 0) AS numbers FROM sent
), expired AS (
    SELECT number, row_number() OVER () AS place FROM (
        SELECT number FROM ended_status_indexes
        WHERE ended_at < {NOW} - interval '{int(REUSED_AFTER / timedelta(seconds=1))} s'
        ORDER BY number LIMIT (SELECT numbers FROM wanted) FOR UPDATE SKIP LOCKED) AS oldest
), reused AS (
    DELETE FROM ended_status_indexes e USING expired WHERE e.number = expired.number
    RETURNING e.index, expired.place
), free AS MATERIALIZED (
    SELECT place, coalesce(reused.index, nextval('status_index_numbers')) AS index
    FROM generate_series(1, (SELECT numbers FROM wanted)) AS place LEFT JOIN reused USING (place)
), taken AS (
    INSERT INTO status_indexes AS x (index, system_user_id, secret_id, tin, rob, actor,
        scopes, permissions, check_at)
    SELECT free.index, system_user_id, secret_id, tin, rob, actor, scopes, permissions,
        sent.check_at
    FROM sent JOIN free USING (place)
    ORDER BY {KEY}
    ON CONFLICT ({KEY}) DO UPDATE SET
        scopes = x.scopes || excluded.scopes,
        permissions = x.permissions || excluded.permissions,
        check_at = least(x.check_at, excluded.check_at),
        version = CASE WHEN x.scopes @> excluded.scopes AND x.permissions @> excluded.permissions
            THEN x.version ELSE excluded.version END
    RETURNING x.*
)
SELECT {NOW}, system_user_id, secret_id, tin, rob, actor,
    index, version, CAST(scopes AS text), CAST(permissions AS text) FROM taken
UNION ALL SELECT {NOW}, NULL, NULL, NULL, NULL, NULL, index, NULL, NULL, NULL
FROM free WHERE place > (SELECT count(*) FROM sent)"""


def take_statement(calls: Sequence[TakeStatusIndex]) -> Statement[list[TakenIndex]]:
    """The index of each, in the order of the calls; of two the same, one at most.

    None: its client has changed, or another session has it locked. Those that are
    reserved, for all calls together, come with the first that has one.
    """
    sent = [call._asdict() | names_in(call) for call in calls]

    def parse(rows: list[Row]) -> list[TakenIndex]:
        taken = {tuple(row[1:6]): status_facts(*row[6:]) for row in rows if row[1] is not None}
        found = [TakenIndex(taken.get(call[:5])) for call in calls]
        first = next((n for n, one in enumerate(found) if one.status is not None), 0)
        reserved = tuple(row[6] for row in rows if row[1] is None)
        found[first] = found[first]._replace(reserved=reserved)
        return found

    return statement(_TAKE, sent, parse)


def names_in(call: TakeStatusIndex) -> dict[str, dict[str, int]]:
    """Its scopes and permissions as the columns have them: as names of JSON objects."""
    return {
        "scopes": dict.fromkeys(call.scopes, 1),
        "permissions": dict.fromkeys(call.permissions, 1),
    }
