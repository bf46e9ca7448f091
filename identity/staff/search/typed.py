"""What a user typed or pasted into the search box: read once, before anything is looked up."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from uuid import UUID

from tokens.login_events.reference import reference_in

MAX_LENGTH = 2_000  # whole messages are pasted, to find the reference in them
_MAX_TERM = 255  # as long as the longest name
_CLIENT_ID = re.compile(r"\bci_(?:live|test)_[0-9A-Za-z]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class TypedText:
    """The text as a search term, and what it has inside."""

    term: str
    reference: UUID | None
    address: str | None
    is_client_id: bool

    @property
    def is_searchable(self) -> bool:
        return bool(self.term)


def read_typed(text: str) -> TypedText:
    """Only of a text without a credential."""
    text = " ".join(text.replace("\0", " ").split())[:MAX_LENGTH]
    client_id = _CLIENT_ID.search(text)
    reference = None if client_id else reference_in(text)
    term = client_id[0] if client_id else str(reference) if reference else text[:_MAX_TERM]
    return TypedText(term, reference, _address(term), client_id is not None)


def _address(text: str) -> str | None:
    try:
        return str(ip_address(text))
    except ValueError:
        return None
