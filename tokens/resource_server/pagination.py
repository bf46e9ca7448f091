"""Pages by a cursor: each costs the same, and no change of the list repeats or hides a record.

A cursor is the place of the last record of a page, signed, so that no other text is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core import signing
from django.db.models import Model, QuerySet

from taxpayers.keyset import behind

USUAL_LIMIT, MOST = 100, 500


@dataclass(frozen=True, slots=True)
class ListPage:
    """The records of a page, and where the next one begins; None: it is the last."""

    rows: Sequence[Any]
    next_cursor: str | None


class BadCursor(ValueError):
    """A text that is no cursor of this list."""


def page_of(
    rows: "QuerySet[Any]", order: Sequence[str], *, cursor: str, limit: int, name: str
) -> ListPage:
    """The page after this cursor (empty: the first) in an order of `keyset`. Raises BadCursor."""
    ordered = rows.order_by(*order)
    if cursor:
        ordered = ordered.filter(behind(order, _read(cursor, name, len(order))))
    found = list(ordered[: limit + 1])
    page = found[:limit]
    is_last = len(found) <= limit
    return ListPage(page, None if is_last else _write(page[-1], order, name))


def _write(row: Model, order: Sequence[str], name: str) -> str:
    values = [_plain(getattr(row, column.removeprefix("-"))) for column in order]
    return signing.dumps(values, salt=f"cursor.{name}")


def _read(cursor: str, name: str, length: int) -> list[Any]:
    try:
        values = signing.loads(cursor, salt=f"cursor.{name}")
    except (signing.BadSignature, ValueError, TypeError):
        raise BadCursor from None
    if not isinstance(values, list) or len(values) != length:
        raise BadCursor  # written by another version of this list
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value
