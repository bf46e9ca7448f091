"""A place in a list that is longer than one page: two keys, opaque to clients. Pure."""

import re
from typing import NamedTuple

_TEXT = re.compile("([0-7][0-9a-f]{15})([0-7][0-9a-f]{15})")  # what a bigint can hold


class Cursor(NamedTuple):
    """The last entry of a page: the next one begins behind it, whatever was added or removed."""

    taxpayer_id: int
    permission_id: int

    def __str__(self) -> str:
        return f"{self.taxpayer_id:016x}{self.permission_id:016x}"


def read_cursor(text: str) -> Cursor | None:
    """The place that this text encodes; None if no answer of ours can have had it."""
    match = _TEXT.fullmatch(text)
    return Cursor(int(match[1], 16), int(match[2], 16)) if match else None
