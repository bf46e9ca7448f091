"""Changes that overlap, on PostgreSQL: an epoch never means two states; no deadlock."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from typing import Any

import psycopg
import pytest
from django.db import connection

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

# Taxpayer 1 is a shop, 2 its agent, 3 has no role, 4 is another agent; each has one client.
# Not TRUNCATE, which makes every file of every table anew.
START = """
SET session_replication_role = replica;
DELETE FROM granted_permission_codes; DELETE FROM granted_permissions; DELETE FROM credentials;
DELETE FROM client_usage; DELETE FROM system_users; DELETE FROM intermediaries;
DELETE FROM taxpayers;
RESET session_replication_role;
INSERT INTO taxpayers (id, tin, rob, name, created_at)
    SELECT n, 'C' || n, '', 'Taxpayer', now() FROM generate_series(1, 4) n;
INSERT INTO intermediaries (id, taxpayer_id, created_at) VALUES (2, 2, now()), (4, 4, now());
INSERT INTO system_users (id, taxpayer_id, client_id, name, scopes, logins_per_minute, created,
        updated, blocked_by, blocked_reason)
    SELECT n, n, 'client ' || n, '', 'InvoicingAPI', 12, now(), now(), '', ''
    FROM generate_series(1, 4) n;
INSERT INTO credentials (id, system_user_id, lookup, hint, created_at, expires_at)
    SELECT n, n, 'hash ' || n, '', now(), 'infinity' FROM generate_series(1, 4) n;
INSERT INTO granted_permissions (id, taxpayer_id, intermediary_id, valid_from, created_at)
    VALUES (1, 1, 2, now(), now());
INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)
    VALUES (1, 'documents:submit');
"""
CHANGES = {
    "a client is new": "INSERT INTO system_users (id, taxpayer_id, client_id, name, scopes,"
    " logins_per_minute, created, updated, blocked_by, blocked_reason)"
    " SELECT 5, 2, 'client 5', name, scopes, 12, created, updated, '', ''"
    " FROM system_users WHERE id = 1",
    "a client moves": "UPDATE system_users SET taxpayer_id = 2 WHERE id = 3",
    "a client is blocked": "UPDATE system_users SET blocked_at = now(), blocked_by = 'x',"
    " blocked_reason = 'y' WHERE id = 2",
    "clients change": "UPDATE system_users SET logins_per_minute = logins_per_minute + 1",
    "a secret moves": "UPDATE credentials SET system_user_id = 2 WHERE id = 3",
    "the shop changes": "UPDATE taxpayers SET is_active = NOT is_active WHERE id = 1",
    "the agent changes": "UPDATE taxpayers SET is_active = NOT is_active WHERE id = 2",
    "another taxpayer changes": "UPDATE taxpayers SET is_active = NOT is_active WHERE id = 3",
    "a role is new": "INSERT INTO intermediaries (id, taxpayer_id, created_at)"
    " VALUES (3, 3, now())",
    "the role changes": "UPDATE intermediaries SET is_active = NOT is_active WHERE id = 2",
    "the role moves": "UPDATE intermediaries SET taxpayer_id = 3 WHERE id = 2",
    "a permission is new": "INSERT INTO granted_permissions (id, taxpayer_id, intermediary_id,"
    " valid_from, created_at) VALUES (2, 3, 2, now(), now())",
    "the permission is revoked": "UPDATE granted_permissions SET revoked_at = now() WHERE id = 1",
    "the permission moves": "UPDATE granted_permissions SET taxpayer_id = 3 WHERE id = 1",
    "another has the permission": "UPDATE granted_permissions SET intermediary_id = 4 WHERE id = 1",
    "the permission goes": "DELETE FROM granted_permission_codes WHERE grantedpermission_id = 1;"
    " DELETE FROM granted_permissions WHERE id = 1",
    "a code is new": "INSERT INTO granted_permission_codes (grantedpermission_id,"
    " permissioncode_id) VALUES (1, 'documents:view')",
    "a code goes": "DELETE FROM granted_permission_codes WHERE grantedpermission_id = 1",
}
# The epoch of each client, and everything that a login of it could read.
READING = """
SELECT c.system_user_id, c.epoch, jsonb_build_array(
    to_jsonb(u), to_jsonb(t),
    (SELECT jsonb_agg(to_jsonb(s) ORDER BY s.id) FROM credentials s
        WHERE s.system_user_id = u.id),
    (SELECT to_jsonb(i) FROM intermediaries i WHERE i.taxpayer_id = t.id),
    (SELECT jsonb_agg(jsonb_build_array(to_jsonb(g), to_jsonb(r), (
            SELECT jsonb_agg(permissioncode_id ORDER BY permissioncode_id)
            FROM granted_permission_codes WHERE grantedpermission_id = g.id)) ORDER BY g.id)
        FROM intermediaries i JOIN granted_permissions g ON g.intermediary_id = i.id
        JOIN taxpayers r ON r.id = g.taxpayer_id WHERE i.taxpayer_id = t.id))::text
FROM client_usage c JOIN system_users u ON u.id = c.system_user_id
JOIN taxpayers t ON t.id = u.taxpayer_id
"""


class Sessions:
    def __init__(self) -> None:
        settings = connection.settings_dict
        target = {"host": settings["HOST"], "port": settings["PORT"], "user": settings["USER"]}
        target["dbname"] = settings["NAME"]
        self.first, self.second = (psycopg.connect(**target) for _ in range(2))
        self.reader = psycopg.connect(**target, autocommit=True)
        self._pool = ThreadPoolExecutor(1)
        self._states: dict[tuple[int, int], str] = {}

    def close(self) -> None:
        self.first.close()  # so that the second one waits for nothing
        self._pool.shutdown()
        self.second.close()
        self.reader.close()

    def restart(self) -> None:
        self.reader.execute(START)
        self._states.clear()

    def execute(self, sql: str) -> "Future[Any]":
        """Executes it in the second session; returns when it is done, or waits for a lock."""
        done = self._pool.submit(self.second.execute, sql)
        while not done.done() and not self._waits():
            time.sleep(0.001)
        return done

    def _waits(self) -> bool:
        row = self.reader.execute(
            "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s",
            [self.second.info.backend_pid],
        ).fetchone()
        return bool(row and row[0])

    def read(self) -> None:
        """Fails if an epoch that was read before now means another state."""
        for client, epoch, state in self.reader.execute(READING):
            assert self._states.setdefault((client, epoch), state) == state


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    sessions = Sessions()
    yield sessions
    sessions.close()


def test_an_epoch_never_means_two_states(sessions: Sessions) -> None:
    for first, second in product(CHANGES, repeat=2):
        try:
            if not overlap(sessions, first, second, in_order=False):
                overlap(sessions, first, second, in_order=True)
        except AssertionError:
            pytest.fail(f"while {first}, {second}: an epoch means two states")


def overlap(sessions: Sessions, first: str, second: str, *, in_order: bool) -> bool:
    """Both changes at once; whether the second waited for the first. `in_order`: of the commits."""
    sessions.restart()
    sessions.read()
    sessions.first.execute(CHANGES[first])
    done = sessions.execute(CHANGES[second])
    waited = not done.done()
    if waited or in_order:
        end(sessions.first)
        sessions.read()
    try:
        done.result(timeout=10)
    except psycopg.IntegrityError:  # the first one wrote the same row
        sessions.second.rollback()
    end(sessions.second)
    sessions.read()
    end(sessions.first)
    sessions.read()
    return waited


def end(session: "psycopg.Connection[Any]") -> None:
    try:
        session.commit()
    except psycopg.IntegrityError:  # a foreign key to what is gone
        session.rollback()


def test_a_change_locks_clients_in_the_order_of_their_keys(sessions: Sessions) -> None:
    sessions.restart()
    for client in (3, 2, 1):  # now they are stored in another order
        sessions.reader.execute(
            "UPDATE client_usage SET used = 1 WHERE system_user_id = %s", [client]
        )
    sessions.second.execute("SET enable_indexscan = off; SET enable_bitmapscan = off")
    sessions.first.execute("SELECT FROM client_usage WHERE system_user_id = 2 FOR UPDATE")
    done = sessions.execute(CHANGES["clients change"])
    free = sessions.reader.execute("SELECT system_user_id FROM client_usage FOR UPDATE SKIP LOCKED")
    assert sorted(free) == [(3,), (4,)]
    sessions.first.commit()
    done.result(timeout=10)


def test_a_change_that_could_overlook_a_client_is_refused(sessions: Sessions) -> None:
    """At the isolation level REPEATABLE READ a trigger cannot see who was added meanwhile."""
    sessions.restart()
    sessions.first.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    with pytest.raises(psycopg.errors.RaiseException, match="READ COMMITTED"):
        sessions.first.execute(CHANGES["the agent changes"])
