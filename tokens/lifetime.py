"""How long an access token lives (specification 2.1), and when to renew it (contract 1). Pure."""

import zlib
from datetime import datetime, timedelta

TOKEN_LIFETIME = timedelta(seconds=3600)  # specification 2.1
_FIRST, _LAST = 0.5, 0.9  # shares of the lifetime


def renew_at(client_id: str, issued_at: datetime, lifetime: timedelta) -> datetime:
    """When this client is to fetch its next token: between half and nine tenths of the lifetime.

    By a hash of the client ID: clients that started together do not come again together.
    """
    share = zlib.crc32(client_id.encode()) / 2**32
    return issued_at + lifetime * (_FIRST + (_LAST - _FIRST) * share)
