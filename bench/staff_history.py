"""Fills a registry with 30 days of logins, a twentieth of them refused, and with ends to come."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from tokens.login_events.partitions import first_id

DAYS = 30
# Filled aside, its indexes built afterwards: a month is put in its place when it is complete.
_FILL = SQL(
    """
INSERT INTO {aside} (id, at, reason, detail, client_id, system_user_id, secret_id, subject,
                     actor, scope, kid, source_address, user_agent)
SELECT (lpad(to_hex((extract(epoch FROM e.at) * 1000)::bigint), 12, '0') || '7'
        || substr(e.random, 1, 3) || '8' || substr(e.random, 4, 15))::uuid,
       e.at, e.reason, '', u.client_id, u.id, u.id, t.tin, '', 'InvoicingAPI',
       'a-key-that-signed-long-ago', '10.0.0.0'::inet + (e.n % 16000000), 'ERP/1.0'
FROM (SELECT n, {since}::timestamptz + n * ({until}::timestamptz - {since}::timestamptz) / {count}
              AS at,
             md5(n::text || {since}) AS random,
             CASE WHEN n % 20 = 0 THEN (ARRAY['invalid_credentials', 'secret_expired',
                 'no_permission', 'system_user_blocked', 'invalid_scope'])[1 + n / 20 % 5]
             ELSE '' END AS reason,
             -- Refused is always the same fiftieth of the clients, so that some only fail.
             1 + (n * 7919) % (CASE WHEN n % 20 = 0 THEN 1 + {users} / 50 ELSE {users} END)
              AS system_user_id
      FROM generate_series(0::bigint, {count} - 1) AS n) AS e
JOIN system_users u ON u.id = e.system_user_id
JOIN taxpayers t ON t.id = u.taxpayer_id
"""
)
_ENDS = """
UPDATE client_secrets SET expires_at = now() + (1 + id % 365) * interval '1 day';
UPDATE system_users SET expires_at = now() + (id % 1000 - 10) * interval '1 day' WHERE id % 10 = 0;
UPDATE granted_permissions SET valid_until = now() + (1 + id % 730) * interval '1 day'
    WHERE id % 5 = 0;
"""


def fill(url: str, events: int, users: int) -> None:
    """So many logins until now, by the month in which they happened."""
    until = datetime.now(UTC)
    since = until - timedelta(days=DAYS)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET maintenance_work_mem = '1GB'; SET work_mem = '256MB'")
        for begin, end in _months(since, until):
            first, last = max(begin, since), min(end, until)
            count = int(events * ((last - first) / (until - since)))
            if count:
                _fill_month(connection, (begin, end), (first, last), count, users)
        connection.execute(_ENDS)
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _fill_month(
    connection: psycopg.Connection,
    month: tuple[datetime, datetime],
    logins: tuple[datetime, datetime],
    count: int,
    users: int,
) -> None:
    name = Identifier(f"login_events_{month[0]:%Y_%m}")
    aside = Identifier("login_events_aside")
    connection.execute(
        SQL("CREATE TABLE {} (LIKE login_events INCLUDING DEFAULTS INCLUDING CONSTRAINTS)").format(
            aside
        )
    )
    since, until = (Literal(moment.isoformat()) for moment in logins)
    connection.execute(
        _FILL.format(
            aside=aside, since=since, until=until, count=Literal(count), users=Literal(users)
        )
    )
    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(name))
    connection.execute(SQL("ALTER TABLE {} RENAME TO {}").format(aside, name))
    bounds = [Literal(str(first_id(moment))) for moment in month]
    connection.execute(
        SQL("ALTER TABLE login_events ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})").format(
            name, *bounds
        )
    )


def _months(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    begin = since.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while begin < until:
        end = (begin + timedelta(days=32)).replace(day=1)
        yield begin, end
        begin = end
