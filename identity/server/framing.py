"""What makes a request unusable, whatever it asks for (RFC 9112). Pure."""

from collections.abc import Sequence
from itertools import chain

from identity.server import limits
from tokens.request.on_behalf_of import HEADER, spells_on_behalf_of

Headers = Sequence[tuple[bytes, bytes]]

HEADERS_TOO_LONG = f"its headers are longer than {limits.MAX_HEADER_BYTES} bytes"
URL_TOO_LONG = f"its address is longer than {limits.MAX_HEADER_BYTES} bytes"
TRAILER_TOO_LONG = f"a trailer or a chunk extension is longer than {limits.MAX_HEADER_BYTES} bytes"
ON_BEHALF_OF_NOT_A_NAME = "its name has a character that no header may have"
ON_BEHALF_OF_IN_TRAILER = "it is sent as a trailer, not as a header"
_HOP_BY_HOP = (b"connection", b"upgrade", b"http2-settings")


def fault_of(headers: Headers, version: str) -> str:
    """Why a request with these headers (names in lower case) is refused; empty if it is not.

    What httptools refuses by itself does not arrive here: both a Content-Length and a
    Transfer-Encoding, line breaks and NUL in a header, a blank before the colon.
    """
    if len(headers) > limits.MAX_HEADERS:
        return f"it has more than {limits.MAX_HEADERS} headers"
    if sum(map(len, chain.from_iterable(headers))) > limits.MAX_HEADER_BYTES:
        return HEADERS_TOO_LONG
    names = [name for name, _value in headers]
    if b"transfer-encoding" in names or b"trailer" in names:
        for name, value in headers:
            if name == b"transfer-encoding" and (
                version != "1.1" or value.strip(b" \t").lower() != b"chunked"
            ):
                return "its Transfer-Encoding is not chunked, or not of HTTP/1.1"
            if name == b"trailer" and spells_on_behalf_of(value):
                return ON_BEHALF_OF_IN_TRAILER
    hosts = names.count(b"host")
    if hosts > 1 or (not hosts and version == "1.1"):
        return "it must have one Host header"
    return ""


def without_upgrade(method: bytes, url: bytes, headers: Headers) -> bytes:
    """The same request without the offer to go on with another protocol."""
    closes = any(name == b"connection" and b"close" in value.lower() for name, value in headers)
    lines = [b"%b %b HTTP/1.1" % (method, url)]
    lines += [b"%b: %b" % item for item in headers if item[0] not in _HOP_BY_HOP]
    lines += [b"connection: close"] if closes else []
    return b"\r\n".join([*lines, b"", b""])


def misspells_on_behalf_of(received: bytes) -> bool:
    """Whether a header with a blank or a NUL in its name was meant as `onbehalfof`."""
    head = received.partition(b"\r\n\r\n")[0]
    names = (line.partition(b":")[0] for line in head.split(b"\n") if b":" in line)
    return any(spells_on_behalf_of(name) and name.lower() != HEADER.encode() for name in names)
