"""What tokens are checked by: the metadata, keys and status lists of the identity service."""

from dataclasses import dataclass
from typing import Any

from einvoicing_tokens.issuer.cache import Cache
from einvoicing_tokens.issuer.keys import Keys
from einvoicing_tokens.issuer.metadata import Metadata
from einvoicing_tokens.issuer.source import Source
from einvoicing_tokens.status.status_lists import StatusLists


@dataclass(frozen=True, slots=True)
class Status:
    """How old the facts are that tokens are checked by, for health checks and metrics.

    `age_seconds` is that of the oldest list, or of the keys without a list; None before the first
    token. `usable_seconds`: how long tokens can be checked if nothing newer comes. `error` says
    why the last fetch failed; empty if it did not.
    """

    age_seconds: float | None
    usable_seconds: float
    error: str


class Published:
    """All of them, fetched when they are needed; a list is used for `most_seconds`."""

    def __init__(self, issuer: str, source: Source, most_seconds: float) -> None:
        self.metadata = Metadata(issuer, source)
        self.keys = Keys(self.metadata, source)
        self.status_lists = StatusLists(issuer, self.keys, source, most_seconds)

    def caches(self) -> list[Cache[Any]]:
        """Of what was needed so far."""
        return [self.metadata.cache, self.keys.cache, *self.status_lists.caches()]

    def status(self) -> Status:
        """As of now."""
        lists = [facts for one in self.status_lists.caches() if (facts := one.facts())]
        keys = self.keys.cache.facts()
        known = [*lists, keys] if keys else lists
        if not known:
            return Status(None, 0.0, "")
        age = max(facts.age for facts in lists or known)
        errors = [facts.error for facts in known if facts.error]
        return Status(age, min(facts.usable for facts in known), "".join(errors[:1]))
