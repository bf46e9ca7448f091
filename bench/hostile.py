"""Requests that are made to be expensive: at each address, in each place, of each kind of bytes."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

# What is repeated: it costs most where it is decoded, searched, split or written.
UNITS = {
    "letters": b"a",
    "words": b"aB3 ",
    "%41": b"%41",
    "/1%41+": b"/1%41+",
    "%c3%a9": b"%c3%a9",
    "%2525": b"%2525",
    "a=1&": b"a=1&",
    "a=1;": b"a=1;",
    '"a",': b'"a",',
    "é": b"\xc3\xa9",
}
_NOT_IN_A_URL = ("words", '"a",', "é")
# The server takes no more in headers; the other is what is examined of a text for its record.
_LENGTH, _EXAMINED_LENGTH = 28_000, 190
_LONGEST_BODY = 16_000
_FORM = b"application/x-www-form-urlencoded"

# The places of a hostile text. What is no name here is that of a header.
_PATH, _QUERY, _FIELD, _BODY, _JSON = "path", "query", "client_id", "body", "JSON"
_BODY_WITH = {
    _FIELD: b"grant_type=client_credentials&client_secret=x&client_id=%b",
    _BODY: b"%b",
    _JSON: b'{"name": "%b"}',
}
_AFTER_PATH = {_PATH: b"/%b", _QUERY: b"?%b"}
_NO_HEADERS = {*_BODY_WITH, *_AFTER_PATH}
_EVERYWHERE = ("User-Agent", "Accept", "Content-Type", _QUERY)
_OPERATION = ("Basic", "DPoP", "onbehalfof", _FIELD, _BODY)
_PAGE = ("If-None-Match", "Accept-Language", "Cookie")
_API = ("Bearer", "DPoP", "If-None-Match")
_STAFF = ("Accept-Language", "Cookie", "Referer", _PATH)


@dataclass(frozen=True, slots=True)
class Address:
    """A method and a path, and the places that it looks at; `serve` says which service answers."""

    method: str
    path: str
    places: Sequence[str]
    serve: str = "login"

    @property
    def name(self) -> str:
        of_staff = " (staff)" if self.serve == "staff" else ""
        return f"{self.method} {self.path}{of_staff}"


def _read(*paths: str, places: Sequence[str] = _PAGE, serve: str = "login") -> list[Address]:
    return [Address("GET", path, (*_EVERYWHERE, *places), serve) for path in paths]


def _post(*paths: str, places: Sequence[str], serve: str = "login") -> list[Address]:
    return [Address("POST", path, (*_EVERYWHERE, *places), serve) for path in paths]


LOGIN, *_OTHERS = _post(
    *("/connect/token", "/connect/introspect", "/connect/revocation"), places=_OPERATION
)
ADDRESSES = (
    *(LOGIN, *_OTHERS),
    *_read("/api/v1/me", "/api/v1/permissions", "/api/v1/credentials/current", places=_API),
    *_read("/api/v1/logins", places=(*_API, _PATH)),
    *_post("/api/v1/credentials/current", places=(*_API, _BODY, _JSON)),
    *_read("/", "/guide", "/errors/", "/openapi.json", "/sandbox"),
    *_read("/developers/style.css", places=(*_PAGE, _PATH)),
    *_read("/.well-known/oauth-authorization-server", "/.well-known/jwks.json", "/status"),
    *_read("/status/0", "/connect/token", "/nothing", places=(*_PAGE, _PATH)),
    *_read("/health", "/health/live", "/health/ready", "/metrics"),
    *_read("/api/v1/management/taxpayers", places=(*_API, _PATH), serve="staff"),
    *_post("/api/v1/management/taxpayers", places=(*_API, _BODY, _JSON), serve="staff"),
    *_read("/admin/", "/signin/", "/nothing", places=_STAFF, serve="staff"),
    *_post("/signin/", "/language/", places=(*_STAFF, _FIELD, _BODY), serve="staff"),
)


@dataclass(frozen=True, slots=True)
class Hostile:
    """A request to this address with this unit in this place, so many bytes of it at most."""

    address: Address
    place: str = ""
    unit: str = ""
    length: int = 0

    def request(self, chance: Random, source: str = "") -> bytes:
        """Its bytes, behind a proxy, from this source or from a random one."""
        line, headers, body = self._parts()
        random = ".".join(str(chance.randrange(1, 255)) for _ in range(4))
        headers = {
            "Host": b"127.0.0.1",
            "X-Forwarded-For": (source or random).encode(),
            "X-Forwarded-Proto": b"https",
            "Content-Length": b"%d" % len(body),
            **headers,
        }
        lines = [b"%b: %b" % (name.encode(), value) for name, value in headers.items()]
        return b"\r\n".join([line, *lines, b"", body])

    def _parts(self) -> tuple[bytes, dict[str, bytes], bytes]:
        """The first line, its own headers, and the body."""
        text, body, headers = self._text(), b"", {}
        if self.address.method == "POST":
            body = (
                _BODY_WITH.get(self.place, b"grant_type=client_credentials&client_id=x%.0b") % text
            )
            headers["Content-Type"] = b"application/json" if self.place == _JSON else _FORM
        if self.place == "Content-Type":
            headers["Content-Type"] = _FORM + b";" + text
        elif self.place == "Basic":
            headers["Authorization"] = b"Basic " + b64encode(b"x:" + text)[: self.length // 4 * 4]
        elif self.place == "Bearer":
            headers["Authorization"] = b"Bearer " + text
        elif self.place and self.place not in _NO_HEADERS:
            headers[self.place] = text
        target = self.address.path.encode() + _AFTER_PATH.get(self.place, b"%.0b") % text
        return b"%b %b HTTP/1.1" % (self.address.method.encode(), target), headers, body

    def _text(self) -> bytes:
        length = min(self.length, _LONGEST_BODY) if self.place in _BODY_WITH else self.length
        unit = UNITS.get(self.unit, b"")
        return unit * (length // len(unit)) if unit else b""


def hostile_to(address: Address) -> Iterator[Hostile]:
    """The plain request first, then each kind of bytes in each place."""
    yield Hostile(address)
    for place in address.places:
        for unit in UNITS:
            if place not in (_PATH, _QUERY) or unit not in _NOT_IN_A_URL:
                yield Hostile(address, place, unit, _LENGTH)
                if place in ("User-Agent", _FIELD):
                    yield Hostile(address, place, unit, _EXAMINED_LENGTH)
