"""Used client assertions and DPoP proofs are stored until they expire: each is accepted once.

RFC 7523 section 3, RFC 9449 section 11.1.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from tokens.models import UsedAssertion, UsedProof

_BATCH = 5_000
_CLOCKS_DIFFER = timedelta(minutes=1)


def prune_used_assertions(at: datetime) -> int:
    """Deletes those that have expired, in small batches, and returns how many these were."""
    return _prune(UsedAssertion, at) + _prune(UsedProof, at)


def prune_some_proofs() -> None:
    """Deletes a batch of proofs that have expired, and waits for no other process that does so.

    By the database's clock, and not those of its last minute: the clock of a node may be another.
    """
    expired = UsedProof.objects.filter(expires_at__lt=Now() - _CLOCKS_DIFFER)
    with transaction.atomic():
        ids = expired.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_BATCH]
        UsedProof.objects.filter(pk__in=list(ids)).delete()


def _prune(kind: type[UsedAssertion | UsedProof], at: datetime) -> int:
    return sum(iter(lambda: _delete_batch(kind, at), 0))


def _delete_batch(kind: type[UsedAssertion | UsedProof], at: datetime) -> int:
    expired = kind._default_manager.filter(expires_at__lt=at).values_list("pk", flat=True)[:_BATCH]
    deleted, _ = kind._default_manager.filter(pk__in=list(expired)).delete()
    return deleted
