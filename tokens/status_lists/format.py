"""Status lists as they are published: bits, claims and addresses. Pure.

Token Status List (TSL), draft-ietf-oauth-status-list-21, which waits to become an RFC.
"""

import zlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

TYP = "statuslist+jwt"  # section 5.1
MEDIA_TYPE = f"application/{TYP}"  # section 8.1
VALID, INVALID = 0, 1  # section 7.1
BITS = 1  # for each token: section 4.1
LIST_LENGTH = 2**20  # indexes of one list: 128 KiB before it is compressed
PATH = "/status"
# How long a copy is used before the next one is fetched, and when it must not be used any more
# (section 13.7). A change is published after 1 second at most, so it is known in 10.
TTL = timedelta(seconds=5)
LIFETIME = timedelta(seconds=60)


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


def compress(statuses: bytes | bytearray) -> str:
    """The member `lst`: the first index is the lowest bit of the first byte (section 4.1)."""
    return urlsafe_b64encode(zlib.compress(statuses, 9)).rstrip(b"=").decode()


def list_claims(issuer: str, number: int, lst: str, at: datetime) -> dict[str, Any]:
    """The claims of the signed list as it is at this moment (section 5.1)."""
    issued_at = int(at.timestamp())
    return {
        "iss": issuer,
        "sub": list_uri(issuer, number),
        "iat": issued_at,
        "exp": issued_at + int(LIFETIME.total_seconds()),
        "ttl": int(TTL.total_seconds()),
        "status_list": {
            "bits": BITS,
            "lst": lst,
            "aggregation_uri": f"{issuer}{PATH}",
        },
    }
