"""Used client assertions are stored until they expire: each is accepted once (RFC 7523 3)."""

from datetime import datetime

from tokens.models import UsedAssertion

_BATCH = 5_000


def prune_used_assertions(at: datetime) -> int:
    """Deletes those that have expired, in small batches, and returns how many these were."""
    return sum(iter(lambda: _delete_batch(at), 0))


def _delete_batch(at: datetime) -> int:
    expired = UsedAssertion.objects.filter(expires_at__lt=at).values_list("pk", flat=True)[:_BATCH]
    deleted, _ = UsedAssertion.objects.filter(pk__in=list(expired)).delete()
    return deleted
