"""An issuer that a test controls: real HTTP, real keys, tokens as this service signs them."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import urllib3

from einvoicing_tokens import InvalidToken, TokenVerifier
from einvoicing_tokens.issuer.clock import Clock
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import Authorization
from tokens.access_tokens.claims import LIST_LENGTH, access_token_claims
from tokens.keys.ring import Key, generate, public_jwk
from tokens.keys.signer import sign
from tokens.status_lists.format import compress, list_claims

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
TAXPAYER, INTERMEDIARY = TaxpayerId("C2584563222", "202001234567"), TaxpayerId("D1111111111")
METADATA, JWKS = "/.well-known/oauth-authorization-server", "/.well-known/jwks.json"
LIST, INTROSPECT = "/status/1", "/connect/introspect"


class SetClock(Clock):
    def __init__(self) -> None:
        self.seconds = 0.0

    def wall(self) -> float:
        return AT.timestamp() + self.seconds

    def monotonic(self) -> float:
        return self.seconds


def new_key(alg: str = "ES256") -> Key:
    private_key = generate(alg)
    jwk = public_jwk(private_key, alg)
    return Key(jwk["kid"], alg, AT, jwk, private_key)


def is_accepted(verifier: TokenVerifier, token: str) -> bool:
    """Whether it is, or refused with 401; raises Unavailable if that cannot be known."""
    try:
        return verifier.verify(token).is_authenticated
    except InvalidToken:
        return False


@dataclass
class Issuer:
    """Serves what an identity service publishes; at a path with another body or more headers."""

    server: ThreadingHTTPServer
    clock: SetClock = field(default_factory=SetClock)
    keys: list[Key] = field(default_factory=lambda: [new_key()])  # the last one signs
    answers: dict[str, bytes] = field(default_factory=dict)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    is_away: bool = False
    may_answer: threading.Event = field(default_factory=threading.Event)
    ended: bytearray = field(default_factory=lambda: bytearray(LIST_LENGTH // 8))
    pools: list[urllib3.PoolManager] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def signer(self) -> Key:
        return self.keys[-1]

    def verifier(self, **options: Any) -> TokenVerifier:
        pool = urllib3.PoolManager()
        self.pools.append(pool)
        given = {"audience": "InvoicingAPI", "look_ahead": False, **options}
        return TokenVerifier(self.url, pool=pool, clock=self.clock, **given)

    def in_place(self, value: Any, other: "Issuer") -> Any:
        """A text with the addresses of both in place of {url}, {other} and {host}."""
        if not isinstance(value, str):
            return value
        return value.format(url=self.url, other=other.url, host=other.url.partition("//")[2])

    def claims(self, *, is_intermediary: bool = False, index: int | None = None) -> dict[str, Any]:
        login = Authorization(
            client_id="ci_test_1",
            subject=TAXPAYER,
            actor=INTERMEDIARY if is_intermediary else None,
            scopes=("InvoicingAPI",),
            asked_scopes=None,
            permissions=("documents:submit",) if is_intermediary else (),
            at=AT + timedelta(seconds=self.clock.seconds),
        )
        audiences = {"InvoicingAPI": "InvoicingAPI"}
        claims = access_token_claims(
            login, issuer=self.url, jti="a-jti", status_index=0, audiences=audiences
        )
        del claims["status"]
        if index is not None:
            claims["status"] = {"status_list": {"idx": index, "uri": self.url + LIST}}
        return claims

    def token(self, *, key: Key | None = None, typ: str = "at+jwt", **changes: Any) -> str:
        """A token; a claim that is given as None is left out."""
        login = {
            name: changes.pop(name) for name in ("is_intermediary", "index") if name in changes
        }
        claims = {**self.claims(**login), **changes}
        left = {name: value for name, value in claims.items() if value is not None}
        return sign(left, key or self.signer, typ)

    def end(self, index: int) -> None:
        self.ended[index // 8] |= 1 << index % 8

    def status_list(self, *, typ: str = "statuslist+jwt", **changes: Any) -> bytes:
        at = AT + timedelta(seconds=self.clock.seconds)
        claims = list_claims(self.url, 1, compress(self.ended), at, timedelta(minutes=1))
        left = {name: value for name, value in {**claims, **changes}.items() if value is not None}
        return sign(left, self.signer, typ).encode()

    def body(self, path: str) -> bytes:
        """Raises KeyError for a path that there is not."""
        if path in self.answers:
            return self.answers[path]
        made: dict[str, Callable[[], bytes]] = {
            METADATA: self._metadata,
            JWKS: lambda: json.dumps({"keys": [key.public_jwk for key in self.keys]}).encode(),
            LIST: self.status_list,
        }
        return made[path]()

    def _metadata(self) -> bytes:
        published = {
            "issuer": self.url,
            "jwks_uri": self.url + JWKS,
            "introspection_endpoint": self.url + INTROSPECT,
        }
        return json.dumps(published).encode()

    def stop(self) -> None:
        self.may_answer.set()
        for pool in self.pools:
            pool.clear()
        self.server.shutdown()
        self.server.server_close()


def start_issuer() -> Issuer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.daemon_threads = True
    issuer = Issuer(server)
    issuer.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer is one packet: two would wait for each other
        timeout = 30

        def do_GET(self) -> None:
            issuer.requests[self.path] += 1
            issuer.may_answer.wait(60)
            try:
                status, body = 200, issuer.body(self.path)
            except KeyError:
                status, body = 404, b"{}"
            if issuer.is_away:
                status = 503  # whatever the body is
            more = issuer.headers.get(self.path, {})
            self.send_response(302 if "Location" in more else status)
            for name, value in {**more, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Nothing on stderr."""

    server.RequestHandlerClass = Handler
    threading.Thread(target=server.serve_forever, args=(0.002,), daemon=True).start()
    return issuer
