"""What was typed into the search box, and what it found: groups of links."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from identity.staff.framework.search import network_in
from taxpayers.facts.source_networks import Network
from tokens.login_events.reference import reference_in

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


def group_of(title: Any, hits: Sequence[Hit], list_url: str) -> Group:
    """At most MAX_IN_GROUP of the hits, and a link to the list if there are more."""
    return Group(title, hits[:MAX_IN_GROUP], list_url if len(hits) > MAX_IN_GROUP else "")


def exact_hit_first(groups: Sequence[Group]) -> list[Group]:
    """Without empty groups; the first exact hit in a separate group, before all others."""
    exact = next((hit for group in groups for hit in group.hits if hit.is_exact), None)
    if exact is None:
        return [group for group in groups if group.hits]
    others = [
        replace(group, hits=[hit for hit in group.hits if hit is not exact]) for group in groups
    ]
    first = Group(_("Exact match"), [exact])
    return [first, *(group for group in others if group.hits or group.more_url)]


MAX_LENGTH = 2_000  # whole messages are pasted, to find the reference in them
_MAX_TERM = 255  # as long as the longest name
_CLIENT_ID = re.compile(r"\bci_(?:live|test)_[0-9A-Za-z]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class TypedText:
    term: str
    reference: UUID | None
    network: Network | None
    is_client_id: bool


def read_typed(text: str) -> TypedText:
    """Only of a text without a credential."""
    text = " ".join(text.replace("\0", " ").split())[:MAX_LENGTH]
    client_id = _CLIENT_ID.search(text)
    reference = None if client_id else reference_in(text)
    term = client_id[0] if client_id else str(reference) if reference else text[:_MAX_TERM]
    return TypedText(term, reference, network_in(term), client_id is not None)
