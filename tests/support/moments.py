"""The present moment, and who changes something then, as tests give it to services."""

from datetime import UTC, datetime
from typing import Any

from taxpayers.services import Author

OFFICER = Author("officer")


def now() -> datetime:
    return datetime.now(UTC)


def by(author: Author = OFFICER) -> dict[str, Any]:
    return {"by": author, "at": now()}


def why(author: Author = OFFICER) -> dict[str, Any]:
    return {"reason": "a test", **by(author)}
