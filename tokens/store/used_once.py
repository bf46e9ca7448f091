"""Used client assertions and DPoP proofs are stored until they expire: each is accepted once.

RFC 7523 section 3, RFC 9449 section 11.1.
"""

from datetime import datetime

from tokens.models import UsedAssertion, UsedProof

_BATCH = 5_000
# Goes with each use at an address that a token opens: no limit holds there, and anyone gets a token
# for a client of the sandbox. `before` is a minute ago, as the clock of a node may be another.
SOME_EXPIRED = """
DELETE FROM {table} WHERE id IN (
    SELECT id FROM {table} WHERE expires_at < {before} ORDER BY expires_at LIMIT 100 {lock})"""


def prune_used_assertions(at: datetime) -> int:
    """Deletes those that have expired, in small batches, and returns how many these were."""
    return _prune(UsedAssertion, at) + _prune(UsedProof, at)


def _prune(kind: type[UsedAssertion | UsedProof], at: datetime) -> int:
    return sum(iter(lambda: _delete_batch(kind, at), 0))


def _delete_batch(kind: type[UsedAssertion | UsedProof], at: datetime) -> int:
    expired = kind._default_manager.filter(expires_at__lt=at).values_list("pk", flat=True)[:_BATCH]
    deleted, _ = kind._default_manager.filter(pk__in=list(expired)).delete()
    return deleted
