"""The history as a feed: the place of each change, and the chain of their hashes."""

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from django.db import connection, transaction

from taxpayers.keyset import batches_of
from taxpayers.models import Change, HistoryCheck

logger = logging.getLogger("taxpayers.history")

_AT_ONCE = 2_000
_TEXTS = ("by", "address", "action", "object_type", "object_id", "label", "reason")


@dataclass(frozen=True, slots=True)
class Chain:
    """The history as far as it is unbroken; `fault` says what comes then; empty: nothing does."""

    places: int
    begins_at: datetime | None
    chain_hash: str
    fault: str = ""


def hash_of(change: Change, before: str) -> str:
    """SHA-256, in hexadecimal, of the row and of the hash of the row in the place before it."""
    content = {
        **{name: getattr(change, name) for name in _TEXTS},
        "id": change.pk,
        "position": change.position,
        "at": change.at.astimezone(UTC).isoformat(),
        "task_id": str(change.task_id or ""),
        "before": change.before,
        "after": change.after,
    }
    text = json.dumps([before, content], sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def seal(changes: Iterable[Change], before: str) -> None:
    """Give these, which follow the row with the hash `before`, their hashes in their order."""
    for change in changes:
        before = change.chain_hash = hash_of(change, before)


def log_sealed(changes: Iterable[Change]) -> None:
    """A line for each with its hash: what is in a log elsewhere cannot be changed here."""
    for change in changes:
        logger.info(
            "change",
            extra={
                "place": change.position,
                "chain_hash": change.chain_hash,
                "by": change.by,
                "action": change.action,
                "record": f"{change.object_type} {change.object_id}",
                "changed_at": change.at.isoformat(),
                "reason": change.reason,
            },
        )


def verify_chain() -> Chain:
    """Read every row that has its place, in order, some thousands at once."""
    known = HistoryCheck.objects.order_by("-pk").exclude(chain_hash="").first()
    places, begins_at, chain_hash = 0, None, ""
    rows = Change.objects.filter(position__isnull=False).order_by("position")
    for some in batches_of(rows, _AT_ONCE):
        for change in some:
            fault = _fault(change, places, chain_hash)
            if not fault and known is not None and change.position == known.places:
                fault = _replaced(change, known)
            if fault:
                return Chain(places, begins_at, chain_hash, fault)
            places, chain_hash = places + 1, change.chain_hash
            begins_at = begins_at or change.at
    fault = ""
    if known is not None and places < known.places:
        fault = f"The changes after place {places} are missing: on {known.at:%Y-%m-%d} there were"
        fault += f" {known.places}."
    return Chain(places, begins_at, chain_hash, fault)


def _fault(change: Change, places: int, before: str) -> str:
    if change.position != places + 1:
        return f"The change in place {places + 1} is missing."
    if change.chain_hash != hash_of(change, before):
        return f"{_named(change)} was changed, or one was put in its place."
    return ""


def _replaced(change: Change, known: HistoryCheck) -> str:
    """Every hash fits the one before, but they are not those of the former check."""
    if change.chain_hash == known.chain_hash:
        return ""
    return (
        f"{_named(change)} has another hash than on {known.at:%Y-%m-%d}: it or one before it was"
        " changed, and every hash since was made anew."
    )


def _named(change: Change) -> str:
    return f"Change {change.pk} in place {change.position} ({change.action}, {change.label})"


BATCH = 1_000
# Held until the transaction that gives places is committed: so they become visible in their order.
_LOCK = "SELECT pg_advisory_xact_lock(7216548103396)"
_PLACE = "UPDATE changes SET position = %s, chain_hash = %s WHERE id = %s"


def is_numbered() -> bool:
    """Whether every change that was committed by now has its place. Takes no lock."""
    return not Change.objects.filter(position__isnull=True).exists()


@transaction.atomic
def number_changes() -> list[Change]:
    """Give the next changes, at most BATCH, their places and hashes; returns them in order."""
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
