"""The claim `status` of an access token: its index in the status lists (TSL 6.2). Pure."""

from collections.abc import Mapping
from typing import Any

LIST_LENGTH = 2**20  # indexes of one list: 128 KiB before it is compressed


PATH = "/status"


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
    return int(named["uri"].rpartition("/")[2]) * LIST_LENGTH + int(named["idx"])


def list_uri(issuer: str, number: int) -> str:
    """The address of a list, which is also its name."""
    return f"{issuer}{PATH}/{number}"
