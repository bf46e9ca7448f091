"""Hypothesis strategies for requests whose parts are text of any kind, not bytes by chance."""

import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

from hypothesis import strategies as st

from proofs.fuzz import planted as place
from proofs.fuzz.corpus import FuzzInput, Kind
from proofs.fuzz.planted import Planted

_NAMES = (
    *("grant_type", "client_id", "client_secret", "scope", "onbehalfof"),
    *("client_assertion", "client_assertion_type"),
)
_RIGHT = (
    *(("grant_type", "client_credentials"), ("client_id", place.CLIENT_ID.decode())),
    ("client_secret", place.CLIENT_SECRET.decode()),
)
_BOUND = (
    *(("grant_type", "client_credentials"), ("client_id", place.BOUND_CLIENT_ID.decode())),
    ("client_secret", place.BOUND_SECRET.decode()),
)
_TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
# What a header line may hold: no line break and no NUL.
_HEADER_TEXT = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=40
).map(lambda text: text.encode("latin-1"))
_PARAMETER = st.tuples(st.sampled_from(["charset", "charset*", "charset*0*", "boundary"]), _TEXT)


@st.composite
def form_bodies(draw: st.DrawFn) -> bytes:
    """The right form with fields changed, left out, doubled or added, in any order."""
    right = draw(st.sampled_from([_RIGHT, _BOUND]))
    fields = [pair for pair in right if draw(st.integers(0, 9))]
    if not draw(st.integers(0, 3)):
        jwt_bearer = place.JWT_BEARER.decode()
        fields = [*_RIGHT[:1], ("client_assertion_type", jwt_bearer)]
        fields.append(("client_assertion", draw(tokens()).decode()))
    more = st.tuples(st.sampled_from(_NAMES) | _TEXT, _TEXT)
    fields = draw(st.permutations([*fields, *draw(st.lists(more, max_size=4))]))
    encodings: list[Callable[[str], str]] = [quote_plus, str, lambda text: quote(quote(text))]
    encode = draw(st.sampled_from(encodings))
    return "&".join(f"{encode(name)}={encode(value)}" for name, value in fields).encode()


@st.composite
def content_types(draw: st.DrawFn) -> bytes:
    """That of a form, mostly, with parameters of any kind."""
    kind = draw(st.sampled_from(["application/x-www-form-urlencoded", "multipart/form-data"]))
    encodings = st.sampled_from(
        [*("utf-8", "idna", "utf-16", "\x7f", "a'b'c%zz"), "unicode_escape"]
    )
    parameters = draw(st.lists(_PARAMETER | st.tuples(st.just("charset"), encodings), max_size=3))
    text = "".join([kind, *(f"; {name}={value}" for name, value in parameters)])
    printable = "".join(c if " " <= c != "\x7f" else "?" for c in text)
    return printable.encode("latin-1", "replace")


@st.composite
def tokens(draw: st.DrawFn) -> bytes:
    """A JWT with claims and header of any kind and no right signature."""
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
        max_leaves=5,
    )
    names = st.sampled_from(
        [
            *("alg", "kid", "typ", "crit", "exp", "iss", "aud", "sub", "scope"),
            *("jwk", "jti", "iat", "nbf", "htm", "htu", "ath", "nonce"),
        ]
    )
    parts = [draw(st.dictionaries(names, values, max_size=4)) for _ in range(2)]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b".".join([*encoded, draw(st.binary(max_size=8)).hex().encode()])


def authorizations() -> st.SearchStrategy[bytes]:
    """Basic and Bearer, right and wrong, and what is neither."""
    right = place.basic(place.CLIENT_ID, place.CLIENT_SECRET)
    return st.one_of(
        st.just(b"Basic " + right),
        st.just(b"Bearer " + place.ACCESS_TOKEN),
        _TEXT.map(lambda text: b"Basic " + base64.b64encode(text.encode())),
        tokens().map(lambda token: b"Bearer " + token),
        _HEADER_TEXT,
    )


@st.composite
def requests(draw: st.DrawFn) -> FuzzInput:
    """One request; its placeholders are not filled."""
    path = draw(
        st.sampled_from([*(["/connect/token"] * 4), "/api/v1/me", "/status/0", "/status"])
        | st.just("/.well-known/jwks.json")
        | st.sampled_from(["/health/live", "/health/ready", "/signin/", "/metrics", "/nothing"])
        | st.sampled_from(["/errors/x", "/errors/no_permission", "/api/v1/permissions"])
    )
    query = draw(st.just("") | _TEXT.map(lambda text: f"?{quote(text)}"))
    is_login = path == "/connect/token"
    body = draw(form_bodies() | st.binary(max_size=60)) if is_login else b""
    headers = [b"Host: x", b"Content-Length: %d" % len(body)]
    if is_login or draw(st.booleans()):
        headers.append(b"Content-Type: " + draw(content_types()))
    for name, values in (
        (b"Authorization", authorizations()),
        (b"onbehalfof", _HEADER_TEXT | st.just(place.REPRESENTED)),
        (b"User-Agent", _HEADER_TEXT),
        (b"X-Forwarded-For", _HEADER_TEXT),
        (b"DPoP", tokens() | _HEADER_TEXT | st.just(place.proof("0" * 16))),
        (b"SSL-Client-Verify", st.sampled_from([b"SUCCESS", b"NONE"]) | _HEADER_TEXT),
        (b"SSL-Client-Cert", _HEADER_TEXT | st.just(place.CERTIFICATE)),
        (b"Client-Cert", _HEADER_TEXT | st.just(place.CLIENT_CERT)),
    ):
        if draw(st.integers(0, 3)) == 0:
            headers.append(name + b": " + draw(values))
    method = b"POST" if is_login else b"GET"
    lines = [
        method + b" " + (path + query).encode() + b" HTTP/1.1",
        *draw(st.permutations(headers)),
    ]
    return FuzzInput((b"\r\n".join([*lines, b"", body]),), Kind.FRAMED)


def filled(one: FuzzInput, planted: Planted) -> FuzzInput:
    """The input with credentials; the length of its body changes with REPRESENTED alone."""
    return FuzzInput(tuple(planted.fill(part) for part in one.parts), one.kind, one.name)
