"""Takes indexes of the status lists on PostgreSQL: one statement for many."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from taxpayers.facts.query import status_facts
from taxpayers.facts.values import StatusFacts
from taxpayers.sql import Row, Statement
from tokens.login_events.events import TakeStatusIndex
from tokens.login_events.postgresql_event import NOW, statement
from tokens.status_lists.reuse import REUSED_AFTER

# The oldest of those whose tokens have all expired, or else a new one. A row that is there stays,
# and stands for more. (The index that was taken for it remains unused, for good.)
#
# Its next check is that of the decision that needs it, where the facts of that decision are still
# true: the epoch confirms it, and its lock makes a change wait, which then has the row checked. Who
# cannot have the lock at once gets a new row that is checked now, by the registry as it is then,
# and changes none: so a login that has locked its client meets the row that it has read.
_TAKE = f"""
WITH sent AS (
    SELECT row_number() OVER () AS place, s.* FROM json_to_recordset(%s::json)
        AS s(system_user_id bigint, secret_id bigint, tin varchar, rob varchar, actor varchar,
            scopes jsonb, permissions jsonb, epoch bigint, check_at timestamptz)
), confirmed AS MATERIALIZED (
    SELECT sent.place FROM sent CROSS JOIN LATERAL (
        SELECT FROM client_usage c
        WHERE c.system_user_id = sent.system_user_id AND c.epoch = sent.epoch
        FOR NO KEY UPDATE SKIP LOCKED) AS own_row
), expired AS (
    SELECT number, row_number() OVER () AS place FROM (
        SELECT number FROM ended_status_indexes
        WHERE ended_at < {NOW} - interval '{int(REUSED_AFTER / timedelta(seconds=1))} s'
        ORDER BY number LIMIT (SELECT count(*) FROM sent) FOR UPDATE SKIP LOCKED) AS oldest
), reused AS (
    DELETE FROM ended_status_indexes e USING expired WHERE e.number = expired.number
    RETURNING e.index, expired.place
), taken AS (
    INSERT INTO status_indexes AS x (index, system_user_id, secret_id, tin, rob, actor,
        scopes, permissions, check_at)
    SELECT coalesce(reused.index, nextval('status_index_numbers')), system_user_id, secret_id,
        tin, rob, actor, scopes, permissions,
        CASE WHEN confirmed.place IS NULL THEN {NOW} ELSE sent.check_at END
    FROM sent LEFT JOIN reused USING (place) LEFT JOIN confirmed USING (place)
    ON CONFLICT (system_user_id, secret_id, tin, rob, actor) DO UPDATE SET
        scopes = x.scopes || excluded.scopes,
        permissions = x.permissions || excluded.permissions,
        check_at = least(x.check_at, excluded.check_at),
        version = CASE WHEN x.scopes @> excluded.scopes AND x.permissions @> excluded.permissions
            THEN x.version ELSE excluded.version END
    WHERE excluded.check_at IS DISTINCT FROM {NOW}
    RETURNING x.*
)
SELECT {NOW}, system_user_id, secret_id, tin, rob, actor,
    index, version, CAST(scopes AS text), CAST(permissions AS text) FROM taken"""


def take_statement(calls: Sequence[TakeStatusIndex]) -> Statement[list[StatusFacts | None]]:
    """The index of each, in the order of the calls; of two the same, one at most.

    None: its client has changed, or is being changed, and has a row that stands for less.
    """
    sent = [
        call._asdict()
        | {
            "scopes": dict.fromkeys(call.scopes, 1),
            "permissions": dict.fromkeys(call.permissions, 1),
        }
        for call in calls
    ]

    def parse(rows: list[Row]) -> list[Any]:
        taken = {tuple(row[1:6]): status_facts(*row[6:]) for row in rows}
        return [taken.get(call[:5]) for call in calls]

    return statement(_TAKE, sent, parse)
