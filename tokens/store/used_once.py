"""SQL that deletes some used client assertions or DPoP proofs that have expired.

It goes with each use at an address that a token opens: no limit holds there, and anyone gets a
token for a client of the sandbox. `before` is a minute ago, as the clock of a node may be another.
"""

SOME_EXPIRED = """
DELETE FROM {table} WHERE id IN (
    SELECT id FROM {table} WHERE expires_at < {before} ORDER BY expires_at LIMIT 100 {lock})"""
