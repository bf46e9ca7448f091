"""The place of each change in the feed, in an order in which nothing comes late.

The ids of the history are given before a transaction is committed, so a reader who has seen one
may have missed a smaller one. A place is given afterwards, to what is committed: who has seen a
place has seen, or can see, all before it. The changes of one record have the order of their ids.
"""

from django.db import connection, transaction

from taxpayers.models import Change
from taxpayers.services.feed.chain import seal

BATCH = 1_000
# Held until the transaction that gives places is committed: so they become visible in their order.
_LOCK = "SELECT pg_advisory_xact_lock(7216548103396)"
_PLACE = "UPDATE changes SET position = %s, chain_hash = %s WHERE id = %s"


def is_numbered() -> bool:
    """Whether every change that was committed by now has its place. Takes no lock."""
    return not Change.objects.filter(position__isnull=True).exists()


@transaction.atomic
def number_changes() -> list[Change]:
    """Give the next changes their places and hashes, at most BATCH; these, in their order.

    Others that do the same wait for the end of the transaction.
    """
    if connection.vendor == "postgresql":  # on SQLite no other process writes now
        with connection.cursor() as cursor:
            cursor.execute(_LOCK)
    numbered = Change.objects.filter(position__isnull=False).order_by("-position")
    last = numbered.first()
    places = last.position or 0 if last else 0
    changes = list(Change.objects.filter(position__isnull=True).order_by("pk")[:BATCH])
    for position, change in enumerate(changes, start=places + 1):
        change.position = position
    seal(changes, last.chain_hash if last else "")
    if changes:
        given = [(change.position, change.chain_hash, change.pk) for change in changes]
        with connection.cursor() as cursor:
            cursor.executemany(_PLACE, given)
    return changes
