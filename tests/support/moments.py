"""The present moment, as tests give it to services."""

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)
