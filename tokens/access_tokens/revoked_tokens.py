"""Revoked tokens are stored until they would have expired anyway (RFC 7009)."""

from datetime import datetime

from tokens.models import RevokedToken

_BATCH = 5_000


def prune_revoked_tokens(at: datetime) -> int:
    """Deletes those that have expired, in small batches, and returns how many these were."""
    return sum(iter(lambda: _delete_batch(at), 0))


def _delete_batch(at: datetime) -> int:
    expired = RevokedToken.objects.filter(expires_at__lt=at).values_list("pk", flat=True)[:_BATCH]
    deleted, _ = RevokedToken.objects.filter(pk__in=list(expired)).delete()
    return deleted
