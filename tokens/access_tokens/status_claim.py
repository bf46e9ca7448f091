"""The claim `status` of an access token: its index in the status lists (TSL 6.2). Pure."""

from collections.abc import Mapping
from typing import Any

LIST_LENGTH = 2**20  # indexes of one list: 128 KiB before it is compressed


PATH = "/status"
_HIGHEST = 2**63 - 1  # what a column of the database takes


def claims_of_token(issuer: str, index: int) -> dict[str, Any]:
    """The claim `status` of a token with this index (section 6.2)."""
    number, idx = divmod(index, LIST_LENGTH)
    return {"status_list": {"idx": idx, "uri": list_uri(issuer, number)}}


def index_of_claims(claims: Mapping[str, Any]) -> int | None:
    """The index of a token that was verified; None for one from before there were any."""
    status = claims.get("status")
    if status is None:
        return None
    named = status["status_list"]
    return index_in_list(named["uri"], named["idx"])


def index_in_list(uri: str, idx: int) -> int:
    """The index at this place of a list. Raises ValueError if no index can be meant."""
    index = int(uri.rpartition("/")[2]) * LIST_LENGTH + idx
    if not 0 <= index <= _HIGHEST:
        raise ValueError(uri, idx)
    return index


def list_uri(issuer: str, number: int) -> str:
    """The address of a list, which is also its name."""
    return f"{issuer}{PATH}/{number}"
