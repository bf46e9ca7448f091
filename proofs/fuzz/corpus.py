"""What is sent on one connection, and files of it that can be read, committed and replayed.

An input in a file: a comment with how it is sent and its name, then one Python bytes literal for
each part. Placeholders are replaced by credentials (`planted`).
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote_to_bytes

from proofs.fuzz.planted import Planted

CORPUS = Path(__file__).with_name("corpus")
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")
_NEED_NO_ESCAPE = b"/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ORIGIN = re.compile(rb"[a-z]+://[^/]*", re.IGNORECASE)
LOGIN_PATH = b"/connect/token"
OTHER_PATHS = (b"/connect/introspect", b"/connect/revocation")
API_PATH = b"/api/v1/"
_CONNECTION = "on connection "


class Kind(StrEnum):
    FRAMED = "framed"  # one request with a clear end, among others on a connection: one answer
    ENDED = "ended"  # any bytes, then the client stops sending: an answer, then the end
    OPEN = "open"  # any bytes, and the client waits: an answer (408), then the end


@dataclass(frozen=True)
class FuzzInput:
    """The parts are sent one after the other. `is_canary`: a right login, which must succeed.

    Framed ones with the same name of a `connection` share one; those without a name share theirs
    with any others.
    """

    parts: tuple[bytes, ...]
    kind: Kind = Kind.ENDED
    name: str = field(default="", compare=False)
    is_canary: bool = False
    connection: str = ""

    @property
    def way(self) -> str:
        """How it is sent, as in a file."""
        return f"{self.kind}{f', {_CONNECTION}{self.connection}' * bool(self.connection)}"

    @cached_property
    def data(self) -> bytes:
        return b"".join(self.parts)

    @cached_property
    def method(self) -> bytes:
        return self.data.partition(b" ")[0]

    @cached_property
    def decoded(self) -> bytes:
        return unquote_to_bytes(self.data)

    @cached_property
    def may_be_no_login(self) -> bool:
        """Whether any request in it could be for another path whose answers have a reference."""
        return any(path in self.decoded for path in (*OTHER_PATHS, API_PATH))

    @cached_property
    def path(self) -> bytes:
        """Of what is clearly one request; else empty."""
        if self.kind is not Kind.FRAMED:
            return b""
        target = self.data.split(b"\r\n", 1)[0].split(b" ")[1:2] or [b""]
        path = _ORIGIN.sub(b"", re.split(rb"[?#]", target[0])[0], count=1)
        # With a letter that needs no escape, it is another path than the one without.
        is_taken_as_written = any(
            bytes.fromhex(escaped.decode()) in _NEED_NO_ESCAPE for escaped in _ESCAPED.findall(path)
        )
        return path if is_taken_as_written else unquote_to_bytes(path)


def read_inputs(file: Path, planted: Planted) -> Iterator[FuzzInput]:
    for block in f"\n{file.read_text('ascii').strip()}".split("\n# ")[1:]:
        first, *lines = block.splitlines()
        way, _, name = first.partition(": ")
        kind, _, connection = way.partition(f", {_CONNECTION}")
        parts = tuple(planted.fill(ast.literal_eval(line)) for line in lines)
        yield FuzzInput(parts, Kind(kind), name, connection=connection)


def read_corpus(planted: Planted) -> list[FuzzInput]:
    return [found for file in sorted(CORPUS.glob("*.txt")) for found in read_inputs(file, planted)]


def write_inputs(file: Path, inputs: Iterable[FuzzInput], planted: Planted) -> None:
    """Adds them to a corpus file, with placeholders for credentials."""
    with file.open("a", encoding="ascii") as output:
        for one in inputs:
            name = ascii(one.name or "unnamed").strip("'\"")
            lines = [f"# {one.way}: {name}", *(repr(planted.blank(part)) for part in one.parts)]
            output.write("\n".join(lines) + "\n")
