"""The credentials that inputs carry: what logs in, what does not, and nothing of it may come back.

In a corpus placeholders of the same length stand for them, so that lengths in a request stay right.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote_to_bytes

import httpx

from taxpayers.credentials import new_client_secret

CLIENT_ID = b"ci_test_" + b"I" * 28
CLIENT_SECRET = b"cs_test_" + b"S" * 49
WRONG_SECRET = b"cs_test_" + b"W" * 49
ACCESS_TOKEN = b"<access_token>"
REPRESENTED = b"<represented>"

_BETWEEN_CHUNKS = re.compile(rb"\r\n[0-9A-Fa-f]+[^\r\n]*\r\n")
_BASIC = re.compile(rb"basic\s+([0-9A-Za-z+/=]+)", re.IGNORECASE)
_WINDOW = 16  # so much of a secret in a row must not be seen anywhere
_PREFIX = len(b"cs_test_")


def basic(client_id: bytes, client_secret: bytes) -> bytes:
    """The value of a Basic header."""
    return base64.b64encode(client_id + b":" + client_secret)


@dataclass(frozen=True)
class Planted:
    """One right client, its secret and a token of it, a wrong secret, and whom it may act for."""

    client_id: bytes
    client_secret: bytes
    wrong_secret: bytes
    access_token: bytes
    represented: bytes

    @cached_property
    def _pairs(self) -> list[tuple[bytes, bytes]]:
        return [
            (basic(CLIENT_ID, CLIENT_SECRET), basic(self.client_id, self.client_secret)),
            (basic(CLIENT_ID, WRONG_SECRET), basic(self.client_id, self.wrong_secret)),
            (CLIENT_ID, self.client_id),
            (CLIENT_SECRET, self.client_secret),
            (WRONG_SECRET, self.wrong_secret),
            (ACCESS_TOKEN, self.access_token),
            (REPRESENTED, self.represented),
        ]

    def fill(self, data: bytes) -> bytes:
        """The bytes with credentials for placeholders."""
        for placeholder, value in self._pairs:
            data = data.replace(placeholder, value)
        return data

    def blank(self, data: bytes) -> bytes:
        """The bytes with placeholders for credentials."""
        for placeholder, value in self._pairs:
            data = data.replace(value, placeholder)
        return data

    @cached_property
    def marks(self) -> tuple[bytes, ...]:
        """Of whatever has 31 characters of a secret in a row, one is a part."""
        return tuple(
            secret[start : start + _WINDOW]
            for secret in (
                self.client_secret[_PREFIX:],
                self.wrong_secret[_PREFIX:],
                self.access_token.rpartition(b".")[2],
                basic(self.client_id, self.client_secret)[-48:],
            )
            for start in range(0, len(secret) - _WINDOW + 1, _WINDOW)
        )

    def has_right_secret(self, data: bytes) -> bool:
        """Whether a login in these bytes may get a token, however it is encoded."""
        return any(self.client_secret in reading for reading in _readings(data))


def _readings(data: bytes) -> Iterator[bytes]:
    for plain in (data, _BETWEEN_CHUNKS.sub(b"", data)):
        yield plain
        yield unquote_to_bytes(plain)
    for value in _BASIC.findall(data):
        try:
            yield unquote_to_bytes(base64.b64decode(value))
        except binascii.Error:
            continue


def plant(url: str, manage: Callable[..., Any]) -> Planted:
    """A new client of the running service; `manage` is `manage.py` with its answer for machines."""
    own, other = "C1000000041", "C1000000049"
    manage("register_taxpayer", own, "--name", "Sample")
    manage("register_taxpayer", other, "--name", "Other")
    manage("register_intermediary", own)
    parties = ("--taxpayer", other, "--intermediary", own)
    manage("grant_permission", *parties, "--permission", "documents:submit")
    issued = manage("issue_credentials", own, "--name", "ERP", "--logins-per-minute", "0")
    credentials = {name: issued[name] for name in ("client_id", "client_secret")}
    form = {"grant_type": "client_credentials", **credentials}
    token = httpx.post(f"{url}/connect/token", data=form).json()["access_token"]
    return Planted(
        credentials["client_id"].encode(),
        credentials["client_secret"].encode(),
        new_client_secret("test").encode(),
        token.encode(),
        other.encode(),
    )
