"""The credentials that inputs carry: what logs in, what does not, and what may not come back."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any
from urllib.parse import unquote_to_bytes

import httpx

from taxpayers.credentials import new_client_secret

CLIENT_ID = b"ci_test_" + b"I" * 28
CLIENT_SECRET = b"cs_test_" + b"S" * 49
WRONG_SECRET = b"cs_test_" + b"W" * 49
ACCESS_TOKEN = b"<access_token>"
SPARE_TOKEN = b"<spare_token>"  # of the same client; it may be revoked
REPRESENTED = b"<represented>"

_BETWEEN_CHUNKS = re.compile(rb"\r\n(?!0+[;\r])[0-9A-Fa-f]+[^\r\n]*\r\n")
_BASIC = re.compile(rb"basic\s+([0-9A-Za-z+/=]+)", re.IGNORECASE)
_WINDOW = 16  # so much of a secret in a row must not be seen anywhere
_HALF_A_SIGNATURE = 43  # less of a token is of no use to others
_PREFIX = len(b"cs_test_")


def basic(client_id: bytes, client_secret: bytes) -> bytes:
    return base64.b64encode(client_id + b":" + client_secret)


@dataclass(frozen=True)
class Planted:
    """A right client, a wrong secret, and the taxpayer that the client may act for."""

    client_id: bytes
    client_secret: bytes
    wrong_secret: bytes
    access_token: bytes
    represented: bytes
    spare_token: bytes

    @cached_property
    def _values(self) -> dict[bytes, bytes]:
        return {
            basic(CLIENT_ID, CLIENT_SECRET): basic(self.client_id, self.client_secret),
            basic(CLIENT_ID, WRONG_SECRET): basic(self.client_id, self.wrong_secret),
            CLIENT_ID: self.client_id,
            CLIENT_SECRET: self.client_secret,
            WRONG_SECRET: self.wrong_secret,
            ACCESS_TOKEN: self.access_token,
            SPARE_TOKEN: self.spare_token,
            REPRESENTED: self.represented,
        }

    @cached_property
    def _placeholder(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(map(re.escape, self._values)))

    def fill(self, data: bytes) -> bytes:
        """The bytes with credentials for placeholders."""
        return self._placeholder.sub(lambda match: self._values[match[0]], data)

    def blank(self, data: bytes) -> bytes:
        """The bytes with placeholders for credentials."""
        for placeholder, value in self._values.items():
            data = data.replace(value, placeholder)
        return data

    @cached_property
    def marks(self) -> tuple[bytes, ...]:
        """Of what has 31 characters of a secret in a row, or a whole signature, one is a part."""
        secrets = (
            self.client_secret[_PREFIX:],
            self.wrong_secret[_PREFIX:],
            basic(self.client_id, self.client_secret)[-48:],
        )
        signature = self.access_token.rpartition(b".")[2]
        return (
            *chain.from_iterable(_parts(secret, _WINDOW) for secret in secrets),
            *_parts(signature, _HALF_A_SIGNATURE),
        )

    def has_right_secret(self, data: bytes) -> bool:
        """Whether a login in these bytes may get a token, however it is encoded."""
        return any(self.client_secret in reading for reading in _readings(data))


def _parts(text: bytes, length: int) -> Iterator[bytes]:
    return (text[start : start + length] for start in range(0, len(text) - length + 1, length))


def _readings(data: bytes) -> Iterator[bytes]:
    """What these bytes may be read as: without chunks, percent-decoded, the contents of Basic."""
    for plain in (data, _BETWEEN_CHUNKS.sub(b"", data)):
        yield plain
        yield unquote_to_bytes(plain)
    for value in _BASIC.findall(data):
        try:
            yield unquote_to_bytes(base64.b64decode(value))
        except binascii.Error:
            continue


def plant(url: str, manage: Callable[..., Any]) -> Planted:
    """A new client of the service; `manage` is `manage.py` with its answer for machines."""
    own, other = "C1000000041", "C1000000049"
    manage("register_taxpayer", own, "--name", "Sample")
    manage("register_taxpayer", other, "--name", "Other")
    manage("register_intermediary", own)
    parties = ("--taxpayer", other, "--intermediary", own)
    manage("grant_permission", *parties, "--permission", "documents:submit")
    issued = manage("issue_credentials", own, "--name", "fuzz", "--logins-per-minute", "0")
    form = {name: issued[name] for name in ("client_id", "client_secret")}
    form["grant_type"] = "client_credentials"
    first, spare = (
        httpx.post(f"{url}/connect/token", data=form).json()["access_token"] for _ in range(2)
    )
    return Planted(
        client_id=form["client_id"].encode(),
        client_secret=form["client_secret"].encode(),
        wrong_secret=new_client_secret("test").encode(),
        access_token=first.encode(),
        represented=other.encode(),
        spare_token=spare.encode(),
    )
