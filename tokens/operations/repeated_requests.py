"""Requests that were denied: what they ask, so that the same bytes are not read again."""

import hashlib

import msgspec

from tokens.request.token_request import RawTokenRequest, TokenRequest

_MOST = 256


class RepeatedRequests:
    """What was asked by the latest of them, by a hash: it holds no secret."""

    def __init__(self) -> None:
        self._asked: dict[bytes, TokenRequest] = {}

    def find(self, raw: RawTokenRequest) -> TokenRequest | None:
        """What this very request asked when it was denied."""
        return self._asked.get(_hash(raw)) if self._asked else None

    def remember(self, raw: RawTokenRequest, asked: TokenRequest) -> None:
        """Until there are too many: then it begins again."""
        if len(self._asked) == _MOST:
            self._asked.clear()
        self._asked[_hash(raw)] = asked


def _hash(raw: RawTokenRequest) -> bytes:
    return hashlib.blake2b(_encode(raw), digest_size=16).digest()


_encode = msgspec.msgpack.Encoder().encode
