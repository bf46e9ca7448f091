"""Changes of bytes that know nothing, or a little, of what the bytes mean."""

import re
from collections.abc import Callable, Sequence
from random import Random

_MAX_BYTES = 60_000
_INTERESTING = b'\0\t\n\r\x0b\x1f "%&+,-/:;=?\\\x7f\x80\xff0Aa'
_TOKENS = (
    *(b"\0", b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\r\n ", b"\r\n\t", b" ", b": ", b" : ", b"%00"),
    *(b"%", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding:\x0bchunked\r\n"),
    *(b"Content-Length: 5\r\n", b"Content-Length: 18446744073709551616\r\n"),
    *(b"Content-Length: -1\r\n", b"Content-Length: 0x5\r\n"),
    *(b"Transfer-Encoding: identity, chunked\r\n", b"Host: y\r\n", b"Connection: close\r\n"),
    *(b"HTTP/1.0", b"HTTP/1.1\r\n", b"HTTP/2.0", b"HTTP/0.9"),
    *(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"0\r\n\r\n", b"ffffffffffffffff\r\n", b"-1\r\n"),
    *(b";charset=", b"charset*=a''%ff", b"Expect: 100-continue\r\n", b"\xc3\x28", b"\xed\xa0\x80"),
    *(b"\xe2\x80\xae", b"\xf0\x9f\x98\x80", b"onbehalfof : x\r\n", b"Upgrade: h2c\r\n"),
)
_NUMBER = re.compile(rb"\d+")
_NUMBERS = (
    *(b"0", b"-1", b"+5", b"00", b"1", b"65536", b"4294967296", b"9" * 30, b"1e3", b"0x10"),
    *(b"5,5", b""),
)

Change = Callable[[Random, bytes], bytes]


def _place(rng: Random, data: bytes) -> int:
    return rng.randrange(len(data) + 1)


def _range(rng: Random, data: bytes) -> tuple[int, int]:
    start = _place(rng, data)
    return start, min(len(data), start + rng.choice((1, 1, 2, 4, 16, 100)))


def flip_a_bit(rng: Random, data: bytes) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def set_a_byte(rng: Random, data: bytes) -> bytes:
    at = _place(rng, data)
    return data[:at] + bytes([rng.choice(_INTERESTING)]) + data[at + 1 :]


def insert_a_token(rng: Random, data: bytes) -> bytes:
    at = _place(rng, data)
    return data[:at] + rng.choice(_TOKENS) + data[at:]


def insert_a_header(rng: Random, data: bytes) -> bytes:
    at = data.find(b"\r\n")
    return data[: at + 2] + rng.choice(_TOKENS) + data[at + 2 :]


def delete(rng: Random, data: bytes) -> bytes:
    start, end = _range(rng, data)
    return data[:start] + data[end:]


def duplicate(rng: Random, data: bytes) -> bytes:
    start, end = _range(rng, data)
    return data[:end] + data[start:end] * rng.choice((1, 1, 2, 50)) + data[end:]


def cut_off(rng: Random, data: bytes) -> bytes:
    return data[: _place(rng, data)]


def change_a_number(rng: Random, data: bytes) -> bytes:
    found = list(_NUMBER.finditer(data, 0, 2_000))
    if not found:
        return data
    number = rng.choice(found)
    return data[: number.start()] + rng.choice(_NUMBERS) + data[number.end() :]


def change_lines(rng: Random, data: bytes) -> bytes:
    lines = data.split(b"\r\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    way = rng.randrange(4)
    if way == 0:
        lines[at], lines[other] = lines[other], lines[at]
    elif way == 1:
        lines.insert(at, lines[other])
    elif way == 2:
        lines[at] = rng.choice((b" ", b"\t", b"")) + lines[at].swapcase()
    else:
        return data.replace(b"\r\n", rng.choice((b"\n", b"\r", b"\r\r\n")), rng.choice((1, 3, -1)))
    return b"\r\n".join(lines)


CHANGES: Sequence[Change] = (
    *(flip_a_bit, flip_a_bit, set_a_byte, set_a_byte, insert_a_token, insert_a_token),
    *(insert_a_header, delete, duplicate, cut_off, change_a_number, change_lines),
)


def mutate(rng: Random, data: bytes, other: bytes) -> bytes:
    """A few changes, or a part of it before a part of the other. Never empty."""
    if rng.random() < 0.1:
        data = data[: _place(rng, data)] + other[_place(rng, other) :]
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        data = rng.choice(CHANGES)(rng, data)
    return data[:_MAX_BYTES] or b"\0"


def split(rng: Random, data: bytes) -> tuple[bytes, ...]:
    if rng.random() < 0.8:
        return (data,)
    places = sorted({_place(rng, data) for _ in range(rng.choice((1, 2, 5)))} - {0, len(data)})
    return tuple(data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True))
