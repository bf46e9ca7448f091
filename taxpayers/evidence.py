"""Evidence of a permission: who approved it, how that was proved, which words were shown. Pure.

Each grant, change and end of a permission has it (contract 4, "Requests and evidence").
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from taxpayers.moments import exact_text


class EvidenceKind(StrEnum):
    """How it was proved."""

    SIGN_IN = "sign_in"  # a person, who signed in to a portal of the authority
    PAPER_FORM = "paper_form"  # entered by staff
    OWN_CLIENT = "own_client"  # a system user of the taxpayer, which may end, never approve
    ENTERED_BEFORE = "entered_before"  # none is stored


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of an approval. Texts are empty where they say nothing."""

    kind: EvidenceKind
    approved_by: str = ""  # an opaque id of the person, no name
    capacity: str = ""
    sign_in_method: str = ""
    sign_in_level: str = ""
    words_version: str = ""  # of the text that the person agreed to
    words_hash: str = ""
    paper_form: str = ""
    at: datetime | None = None  # None: when it was entered

    def stored(self, entered_at: datetime) -> dict[str, str]:
        """As the registry, the history and the APIs have it."""
        texts = {name: str(value) for name, value in asdict(self).items() if value}
        return texts | {"at": exact_text(self.at or entered_at)}


# What a kind must have; `stored` has nothing else that is empty.
NEEDED: Mapping[EvidenceKind, tuple[str, ...]] = {
    EvidenceKind.SIGN_IN: (
        *("approved_by", "capacity", "sign_in_method", "sign_in_level"),
        *("words_version", "words_hash"),
    ),
    EvidenceKind.PAPER_FORM: ("paper_form",),
    EvidenceKind.OWN_CLIENT: ("approved_by", "capacity", "sign_in_method"),
}


def on_paper(number: str) -> Evidence:
    """A form that the taxpayer has signed."""
    return Evidence(EvidenceKind.PAPER_FORM, paper_form=number)


def shown(stored: Mapping[str, Any] | None) -> dict[str, Any]:
    """What answers of APIs say of it, also of what was entered before evidence was asked for."""
    return dict(stored or {"kind": EvidenceKind.ENTERED_BEFORE.value})
