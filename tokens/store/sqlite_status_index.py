"""Takes indexes of the status lists on SQLite, in the transaction of its one writer."""

import json
from datetime import UTC, datetime

from django.db import connection

from taxpayers.facts.query import status_facts
from taxpayers.sql import fetch_through_django
from tokens.calls import TakenIndex, TakeStatusIndex
from tokens.status_lists.format import REUSED_AFTER

_REUSE = """
DELETE FROM ended_status_indexes WHERE number = (
    SELECT number FROM ended_status_indexes WHERE ended_at < %s ORDER BY number LIMIT 1)
RETURNING "index" """
_TAKE = """
INSERT INTO status_indexes AS x
    (system_user_id, secret_id, tin, rob, actor, scopes, permissions, "index", check_at)
SELECT %s, %s, %s, %s, %s, json(%s), json(%s),
    coalesce(%s, (SELECT coalesce(max(number), -1) + 1 FROM (
        SELECT max("index") AS number FROM status_indexes
        UNION ALL SELECT max("index") FROM ended_status_indexes
        UNION ALL SELECT max(ended_index) FROM status_changes))),
    %s
WHERE EXISTS (SELECT 1 FROM client_usage WHERE system_user_id = %s AND epoch = %s)
ON CONFLICT (system_user_id, secret_id, tin, rob, actor) DO UPDATE SET
    scopes = json_patch(x.scopes, excluded.scopes),
    permissions = json_patch(x.permissions, excluded.permissions),
    version = CASE WHEN json_patch(x.scopes, excluded.scopes) = x.scopes
        AND json_patch(x.permissions, excluded.permissions) = x.permissions
        THEN x.version ELSE excluded.version END,
    check_at = min(
        coalesce(x.check_at, excluded.check_at), coalesce(excluded.check_at, x.check_at))
RETURNING "index", version, scopes, permissions"""


def take_status_index(call: TakeStatusIndex) -> TakenIndex:
    """As the statement of PostgreSQL; it reserves none: here a statement is no round trip."""
    now = datetime.now(UTC)
    reused = fetch_through_django(_REUSE, [_stored(now - REUSED_AFTER)])
    names = (json.dumps(dict.fromkeys(each, 1)) for each in (call.scopes, call.permissions))
    rows = fetch_through_django(
        _TAKE,
        [
            *(*call[:5], *names, reused[0][0] if reused else None),
            *(_stored(call.check_at), call.system_user_id, call.epoch),
        ],
    )
    return TakenIndex(status_facts(*rows[0]) if rows else None)


def _stored(moment: datetime | None) -> object:
    return moment and connection.ops.adapt_datetimefield_value(moment)
