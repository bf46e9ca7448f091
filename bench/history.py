"""Fills a database with login events of the past, as many as years of a country's logins."""

from datetime import UTC, datetime

import psycopg
from psycopg.sql import SQL, Identifier, Literal

# The partition of this month, where the next login goes too: the worst case, in which all are in
# one month. It is filled aside and its indexes are built afterwards, when it is put back.
_PARTITION = "SELECT 'login_events_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')"
_BOUNDS = "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = %s"
_FILL = SQL(
    """
INSERT INTO {partition} (id, at, reason, detail, client_id, system_user_id, secret_id, subject,
                         actor, scope, kid, source_address, user_agent)
SELECT (lpad(to_hex((extract(epoch FROM e.at) * 1000)::bigint), 12, '0') || '7'
        || substr(md5(e.n::text), 1, 3) || '8' || substr(md5(e.n::text), 4, 15))::uuid,
       e.at, '', '', u.client_id, u.id, u.id, t.tin, '', 'InvoicingAPI',
       'a-key-that-signed-long-ago', '10.0.0.0'::inet + (e.n % 16000000), 'ERP/1.0'
FROM (SELECT n, {since}::timestamptz + n * ({until}::timestamptz - {since}::timestamptz) / {count}
              AS at,
             1 + (n * 7919) % {users} AS system_user_id
      FROM generate_series(0::bigint, {count} - 1) AS n) AS e
JOIN system_users u ON u.id = e.system_user_id
JOIN taxpayers t ON t.id = u.taxpayer_id
"""
)


def add_events(url: str, count: int, users: int) -> float:
    """So many issued logins of this month, until now, of all clients alike.

    The number of bytes that one of them takes on disk, with its entries in all indexes.
    """
    if count == 0:
        return 0.0
    until = datetime.now(UTC)
    since = until.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    with psycopg.connect(url, autocommit=True) as connection:
        name, bounds = _partition(connection)
        connection.execute("SET maintenance_work_mem = '1GB'; SET work_mem = '256MB'")
        connection.execute(
            SQL("ALTER TABLE login_events DETACH PARTITION {0}; DROP TABLE {0}").format(name)
        )
        connection.execute(
            SQL(
                "CREATE TABLE {} (LIKE login_events INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
            ).format(name)
        )
        connection.execute(
            _FILL.format(
                partition=name,
                since=Literal(since),
                until=Literal(until),
                count=Literal(count),
                users=Literal(users),
            )
        )
        connection.execute(
            SQL("ALTER TABLE login_events ATTACH PARTITION {} {}").format(name, SQL(bounds))
        )
        connection.execute(SQL("VACUUM (FREEZE, ANALYZE) {}").format(name))
        connection.execute("CHECKPOINT")
        (size,) = connection.execute(
            SQL("SELECT pg_total_relation_size({})").format(Literal(name.as_string(connection)))
        ).fetchone() or (0,)
    return float(size / count)


def _partition(connection: psycopg.Connection) -> tuple[Identifier, str]:
    """The partition of this month, and its `FOR VALUES …`."""
    (name,) = connection.execute(_PARTITION).fetchone() or ("",)
    found = connection.execute(_BOUNDS, [name]).fetchone()
    if found is None:
        raise LookupError(f"{name} is no partition of login_events")
    return Identifier(name), found[0]
