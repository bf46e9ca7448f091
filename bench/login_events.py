"""Fills a registry's database with login events of the past."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from bench.report import progress
from tokens.login_events.partitions import TABLE, first_id, partition_name

_FILL = SQL(
    """
INSERT INTO {name} (id, at, reason, parameter, detail, client_id, system_user_id, secret_id,
                    subject, actor, scope, kid, source_address, user_agent)
SELECT (lpad(to_hex((extract(epoch FROM e.at) * 1000)::bigint), 12, '0') || '7'
        || substr(e.random, 1, 3) || '8' || substr(e.random, 4, 15))::uuid,
       e.at, e.reason, '', '', u.client_id, u.id, u.id, t.tin, e.actor, 'InvoicingAPI',
       'a-former-signing-key', '10.0.0.0'::inet + (e.n % 16000000), 'ERP/1.0'
FROM (SELECT n, {since}::timestamptz + n * ({until}::timestamptz - {since}::timestamptz) / {count}
              AS at,
             md5(n::text || {since}) AS random,
             CASE WHEN n % 100 < {refused} THEN (ARRAY['invalid_credentials', 'secret_expired',
                 'no_permission', 'system_user_blocked', 'invalid_scope'])[1 + n / 100 % 5]
             ELSE '' END AS reason,
             -- A tenth is on behalf of others, a hundredth by the first of the intermediaries.
             CASE WHEN n % 10 = 5 THEN
                 'C' || lpad(({users} + 1 + n / 10 % greatest(1, {users} / 100))::text, 10, '0')
             WHEN n % 100 = 51 THEN 'C' || lpad(({users} + 1)::text, 10, '0')
             ELSE '' END AS actor,
             -- The same fiftieth of the clients is refused each time, so that some only fail.
             1 + (n * 7919) % (CASE WHEN n % 100 < {refused} THEN 1 + {users} / 50 ELSE {users} END)
              AS system_user_id
      FROM generate_series(0::bigint, {count} - 1) AS n) AS e
JOIN system_users u ON u.id = e.system_user_id
JOIN taxpayers t ON t.id = u.taxpayer_id
"""
)
# Without an index while it is filled: the partition gets them, sorted, when it is attached.
_REPLACE = SQL(
    "DROP TABLE IF EXISTS {name};"
    " CREATE TABLE {name} (LIKE {parent} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
)
_ATTACH = SQL("ALTER TABLE {parent} ATTACH PARTITION {name} FOR VALUES FROM ({begin}) TO ({end})")


def add_login_events(
    url: str, count: int, users: int, since: datetime, refused_percent: int = 0
) -> None:
    """So many login events between `since` and now, of the clients with the first `users` keys.

    Replaces those that the months since then had.
    """
    now = datetime.now(UTC)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET maintenance_work_mem = '512MB'")
        for begin, end in _months(since, now):
            first, last = max(begin, since), min(end, now)
            values = {
                "name": Identifier(partition_name(begin)),
                "parent": Identifier(TABLE),
                "begin": Literal(str(first_id(begin))),
                "end": Literal(str(first_id(end))),
                "since": Literal(first.isoformat()),
                "until": Literal(last.isoformat()),
                "count": Literal(round(count * ((last - first) / (now - since)))),
                "users": Literal(users),
                "refused": Literal(refused_percent),
            }
            for statement in (_REPLACE, _FILL, _ATTACH):
                connection.execute(statement.format(**values))
        connection.execute(SQL("VACUUM (FREEZE, ANALYZE) {}").format(Identifier(TABLE)))
        connection.execute("CHECKPOINT")
        size = connection.execute(
            "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(%s)", [TABLE]
        ).fetchone()
    progress(f"{count:,} login events, {size[0] / count:.0f} bytes each" if size else "")


def _months(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    begin = since.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while begin < until:
        end = (begin + timedelta(days=32)).replace(day=1)
        yield begin, end
        begin = end
