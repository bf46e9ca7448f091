"""What a search found: groups of links, one for each kind of record."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _

MAX_IN_GROUP = 6


@dataclass(frozen=True, slots=True)
class Hit:
    """One link. `is_exact`: what was typed names this record and no other one of its kind."""

    title: str
    detail: str
    url: str
    badge: str = ""
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """The hits of one kind; `more_url` leads to a list with all of them."""

    title: Any
    hits: Sequence[Hit]
    more_url: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """Everything, the exact hit first."""

    groups: list[Group] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(len(group.hits) for group in self.groups)


def group_of(title: Any, hits: Sequence[Hit], list_url: str, term: str) -> Group:
    """At most MAX_IN_GROUP of the hits, and a link to the list if there are more."""
    has_more = len(hits) > MAX_IN_GROUP
    more_url = f"{list_url}?{urlencode({'q': term})}" if has_more else ""
    return Group(title, hits[:MAX_IN_GROUP], more_url)


def exact_hit_first(groups: Sequence[Group]) -> Found:
    """Without empty groups; the first exact hit in a separate group, before all others."""
    exact = next((hit for group in groups for hit in group.hits if hit.is_exact), None)
    if exact is None:
        return Found([group for group in groups if group.hits])
    others = [
        replace(group, hits=[hit for hit in group.hits if hit is not exact]) for group in groups
    ]
    first = Group(_("Exact match"), [exact])
    return Found([first, *(group for group in others if group.hits or group.more_url)])
