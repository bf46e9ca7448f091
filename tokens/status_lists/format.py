"""Status lists as they are published: bits, claims, addresses, and for how long. Pure.

Token Status List (TSL), draft-ietf-oauth-status-list-21, which waits to become an RFC.
"""

import zlib
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from typing import Any

from tokens.access_tokens.claims import PATH, list_uri
from tokens.lifetime import TOKEN_LIFETIME

TYP = "statuslist+jwt"  # section 5.1
MEDIA_TYPE = f"application/{TYP}"  # section 8.1
VALID, INVALID = 0, 1  # section 7.1
BITS = 1  # for each token: section 4.1
# How long a copy is used before the next one is fetched (section 13.7). A change is published after
# 1 second at most, so it is known in 10. While no node answers, a copy is used until its `exp`.
TTL = timedelta(seconds=5)


def compress(statuses: bytes | bytearray) -> str:
    """The member `lst`: the first index is the lowest bit of the first byte (section 4.1)."""
    return urlsafe_b64encode(zlib.compress(statuses, 9)).rstrip(b"=").decode()


def list_claims(
    issuer: str, number: int, lst: str, at: datetime, horizon: timedelta
) -> dict[str, Any]:
    """The claims of the signed list at this moment (section 5.1), usable for `horizon`."""
    issued_at = int(at.timestamp())
    return {
        "iss": issuer,
        "sub": list_uri(issuer, number),
        "iat": issued_at,
        "exp": issued_at + int(horizon.total_seconds()),
        "ttl": int(TTL.total_seconds()),
        "status_list": {
            "bits": BITS,
            "lst": lst,
            "aggregation_uri": f"{issuer}{PATH}",
        },
    }


# For clocks that differ, and for logins that were under way.
SET_FOR = TOKEN_LIFETIME + timedelta(minutes=5)
# Every process has cleared its bit by then.
REUSED_AFTER = SET_FOR + timedelta(minutes=5)
