"""Fills the history of a registry: an import of every taxpayer, a month of work, a busy record."""

import psycopg

# In the order of the columns of `changes`; the first row is that of everything that is registered.
_FILL = """
INSERT INTO changes
    (at, by, address, action, object_type, object_id, label, reason, before, after, task_id)
SELECT created_at, 'importer', '10.20.0.14', 'import_registry', 'taxpayer', id::text,
       tin || ' ' || name, 'file registry.csv', '{}',
       jsonb_build_object('tin', tin, 'rob', rob, 'name', name, 'is_active', true),
       '7b8a3f52-0c5d-4d6e-9a51-3f0e6f1c2d94'
FROM taxpayers;
INSERT INTO changes (at, by, address, action, object_type, object_id, label, reason, before, after)
SELECT created + id * interval '29 days' / (SELECT max(id) FROM system_users),
       'officer' || id % 20, '10.20.0.31', 'issue_credentials', 'systemuser', id::text,
       client_id || ' ' || name, '', '{}',
       jsonb_build_object('name', name, 'scopes', scopes, 'secret', '…abcd')
FROM system_users;
INSERT INTO changes (at, by, address, action, object_type, object_id, label, reason, before, after)
SELECT created + n * interval '29 days' / 10000, 'officer' || n % 20, '10.20.0.31',
       CASE n % 2 WHEN 0 THEN 'unblock_system_user' ELSE 'block_system_user' END,
       'systemuser', id::text, client_id || ' ' || name, 'drill',
       jsonb_build_object('blocked_at', CASE n % 2 WHEN 0 THEN created ELSE NULL END),
       jsonb_build_object('blocked_at', CASE n % 2 WHEN 0 THEN NULL ELSE created END)
FROM system_users, generate_series(1, 10000) AS n WHERE id = 1;
ANALYZE changes;
"""


def add_history(url: str) -> None:
    """Two changes for each system user, and 10,000 for the one with the key 1."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(_FILL)
