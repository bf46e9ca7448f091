"""Requests with a clear beginning and end, and anything at all in their parts.

Quick on purpose: a million of them are made in a run. Proofs that are almost right, of a key or a
certificate, are made by Hypothesis in `tests/client_auth/test_signatures.py`.
"""

import gzip
from collections.abc import Sequence
from random import Random
from urllib.parse import quote_from_bytes

from proofs.fuzz import planted as place
from proofs.fuzz.corpus import OTHER_PATHS, FuzzInput, Kind
from proofs.fuzz.planted import Planted, basic

FORM = b"application/x-www-form-urlencoded"
GRANT = b"client_credentials"
JWT_HEADERS = (
    *(b'{"alg":"none"}', b'{"alg":"HS256","typ":"at+jwt"}', b'{"alg":"ES256","kid":"\\u0000"}'),
    *(b'{"alg":"ES256","crit":["x"]}', b'{"alg":["ES256"]}', b"[]", b"{}", b"\xff", b"9" * 500),
    *(b"[" * 5_000, b'{"a":' * 700, b'{"alg":%b}' % (b"9" * 5_000)),
    *(b'{"typ":"at+jwt","kid":["x"]}', b'{"typ":"at+jwt","alg":"ES256","kid":"\\ud800"}'),
    b'{"typ":"at+jwt","kid":"x","b64":false}',
    b'{"alg":"ES256","typ":"at+jwt","kid":"x","jku":"http://127.0.0.1:1/","jwk":{"kty":"EC"}}',
)

PATHS = (
    *(*([b"/connect/token"] * 60), b"/connect/%74oken", b"/connect%2Ftoken"),
    *(b"http://x/connect/token", b"/connect/token/", b"/connect//token", b"/connect/token;a=b"),
    *(b"/connect/token%00", b"/connect/token%ff", b"/CONNECT/TOKEN"),
    *(*([b"/connect/introspect", b"/connect/revocation"] * 6), *([b"/api/v1/me"] * 6)),
    *(b"/api/v1/credentials/current", b"/api/v1/permissions", b"/api/v1/permissions?after=x"),
    *(b"/api/v1/logins/x/explanation", b"/api/v1/logins/%ff/explanation", b"/api/v1/"),
    *(b"/api/v1/x", *([b"/status/0"] * 2), b"/status/1", b"/status/-1", b"/status/00"),
    *(b"/status/\xd9\xa3", b"/status/0?time=1", b"/status", b"/status/%00", b"/status/1e9"),
    *(b"/status/" + b"9" * 999, b"/status/0/1"),
    *([b"/.well-known/jwks.json", b"/.well-known/oauth-authorization-server"] * 2),
    *(b"/.well-known/openid-configuration", b"/health/live", b"/health/live", b"/", b"/nothing"),
    *(b"/nothing/%e4", b"/%2e%2e/%2e%2e/etc/passwd", b"/connect", b"*", b"//"),
)
# These cost a hundred times as much as a login.
SLOW_PATHS = (
    *(b"/health/ready", b"/metrics", b"/signin/", b"/signin/?next=//x", b"/admin/", b"/admin/%ff"),
    *(b"/errors/invalid_credentials", b"/errors/x", b"/errors/%00", b"/errors/use_dpop_nonce/"),
    *(b"/errors/" + b"9" * 999, b"/errors/%2e%2e/%2e%2e/etc/passwd", b"/errors", b"/errors/%ff"),
    *(b"/admin/login/", b"/signin/2fa/", b"/static/..%2f..%2fidentity/settings.py", b"/language/"),
)
METHODS = (b"GET", b"HEAD", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"PROPFIND")
QUERIES = (
    *(b"?", b"?a=b", b"?a=%ff.b", b"?%", b"?a=%zz", b"?client_id=x&client_secret=y", b"?%00=%00"),
    *(b"?onbehalfof=C1", b"?a[]=1&a[]=2", b"?=", b"?&&&", b"?a=" + b"9" * 300, b"?a=%F0%9F%98%80"),
    *(b"?" + b"&".join(b"a%d=1" % n for n in range(1_000)), b"?" + b"&" * 1_100),
)
CHARSETS = (
    *(b"*=a'b'c%zz", b"*=idna''%ff", b"*0=u", b"=\x7f", b"=idna", b"=utf-16", b"=utf-8"),
    *(b'="UTF-8"', b"=iso-8859-1", b"=utf-7", b"=punycode", b"=rot13", b"=base64"),
    *(b"=unicode_escape", b"=undefined", b'="'),
)
CONTENT_TYPES = (
    *(*(FORM + b"; charset" + charset for charset in CHARSETS), FORM + b";;;=;"),
    *(FORM + b"; " + b"a=b; " * 200, FORM.upper(), b"application/json", b"multipart/form-data"),
    *(b"multipart/form-data; boundary*=a''%e4", b"multipart/form-data; boundary=x", b"text/xml"),
    *(b"", b"/", b"a" * 5_000, b"\xff\xfe"),
    b"application/x-www-form-urlencoded\t;\tcharset\t=\tutf-8",
)
TEXTS = (
    *(b"", b" ", b"x", b"%", b"%00", b"%ff", b"%C3%A4", b"%E2%80%AE", b"%0d%0aX:%20y", b"+", b"="),
    *(b"\t", b"null", b"true", b"-1", b"NaN", b"1e999", b"9" * 400, b"a" * 2_000),
    *(b"../../etc/passwd", b"{{7*7}}", b"' OR 1=1 --", b"<script>", b"${jndi:ldap://x}"),
    *(b"%25%30%30", b"\xe4\xf6", b"\xf0\x9f\x98\x80", b"ci_test_", b"cs_test_", b"<client_id>"),
    *(b"Basic", b"eyJ", b"%ed%a0%80", b"InvoicingAPI", GRANT),
)
NAMES = (
    *(b"client_assertion", b"client_assertion_type", b"grant_type", b"token", b"token_type_hint"),
    *(b"client_id", b"client_secret", b"scope", b"onbehalfof", b"x", b"grant_type[]", b""),
)
SCOPES = (
    *(b"InvoicingAPI", b"InvoicingAPI+InvoicingAPI", b"x", b"InvoicingAPI%09x", b"%22", b"%5C"),
    *(b"a%0ab", b"openid", b"a+" * 3_000, b"%20", b"InvoicingAPI%20", b"%F0%9F%98%80"),
    b"invoicingapi",
)
REPRESENTED = (
    *(b"<represented>", b"<represented>:", b"<represented>:1", b"C1,C2", b"", b" "),
    *(b"\t<represented>", b":", b"C1000000009:ROB-12345", b"c1000000009", b"\xc4\xb0" * 5),
    *(b"9" * 3_000, b"C1:C2:C3", b"null", b"%43"),
)
ADDRESSES = (
    *(b"10.0.0.1", b"::1", b"2001:db8::1", b"[2001:db8::1]:443", b"10.0.0.1:80", b"unknown", b""),
    *(b",", b"1.2.3.4, 5.6.7.8", b"1.2.3.4,," + b"10.0.0.1," * 200, b"::ffff:10.0.0.1"),
    *(b"fe80::1%eth0", b"\xff"),
)
OTHER_HEADERS = (
    *(b"Accept: text/html", b"Accept: */*;q=x", b"Accept-Language: ms"),
    *(b"Accept-Language: " + b"a," * 900, b"Cookie: sessionid=x; csrftoken=y"),
    *(b"Cookie: " + b"=;" * 500, b"Expect: 100-continue", b"Expect: x"),
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA",
    *(b"Connection: x", b"Content-Encoding: gzip", b"Range: bytes=0-1", b"If-None-Match: *"),
    *(b"If-Modified-Since: x", b"X-HTTP-Method-Override: GET", b"X-Forwarded-Proto: https"),
    *(b"X-Forwarded-Host: evil", b"TE: x", b"On-Behalf-Of: C1000000009"),
    *(b"on_behalf_of: C1000000009", b"X-OnBehalfOf: C1000000009", b"X_Forwarded_For: 1.1.1.1"),
    *(b"Origin: null", b"Referer: \xff", b"DNT:", b"Proxy-Connection: x"),
    *(
        f"SSL{sign}Client{sign}Verify: SUCCESS\r\nSSL{sign}Client{sign}Cert: x".encode()
        for sign in "_-"
    ),
    b"SSL-Client-Verify: SUCCESS\r\nClient-Cert: :MAAx:",
    *(b"DPoP: x", b"DPoP: " + b"W1tb" * 900, b"DPoP: eyJhIjoxfQ.e30.AA"),
    b"traceparent: 00-%032x-%016x-01\r\ntracestate: %b" % (1, 1, b"a=1," * 500),
    *(b"baggage: a=1", b"X-Forwarded-Prefix: /x", b"Forwarded: for=1.1.1.1"),
    *(b"X-Real-IP: 1.1.1.1", b"Content-Length-X: 5", b"Date: x", b"Via: x"),
)
_OWN_FIELDS = ((b"grant_type", GRANT), (b"client_id", place.CLIENT_ID))
AGENTS = (b"erp/1.0", b"", b"\xff", b"a" * 3_000, b"<script>", b"Mozilla/5.0 (Windows NT 10.0)")


class Grammar:
    def __init__(self, rng: Random, planted: Planted) -> None:
        self._rng = rng
        self._planted = planted
        self._pick = rng.choice

    def canary(self) -> FuzzInput:
        """A right login, for itself or on behalf of another."""
        body = self._planted.fill(_joined([*_OWN_FIELDS, (b"client_secret", place.CLIENT_SECRET)]))
        header = self._planted.fill(self._pick((b"", b"onbehalfof: <represented>\r\n")))
        head = b"POST /connect/token HTTP/1.1\r\nHost: x\r\nContent-Type: %b\r\n" % FORM
        request = head + header + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        return FuzzInput((request,), Kind.FRAMED, "right login", is_canary=True)

    def framed(self) -> FuzzInput:
        chance = self._rng.random
        path = self._pick(SLOW_PATHS) if chance() < 0.01 else self._pick(PATHS)
        is_introspection = path in OTHER_PATHS
        is_login = b"oken" in path or is_introspection
        method = b"POST" if is_login else b"GET"
        if chance() < 0.04:
            method = self._pick(METHODS)
        if chance() < 0.06 and b"?" not in path:
            path += self._pick(QUERIES)
        body = self._body() if is_login or chance() < 0.2 else b""
        if is_introspection and chance() < 0.9:
            body += b"&token=" + (place.SPARE_TOKEN if chance() < 0.5 else self._token())
        headers = [b"Host: x", *self._headers(is_login)]
        self._rng.shuffle(headers)
        first = b"%b %b HTTP/1.1" % (method, path)
        request = b"\r\n".join([first, *headers, self._frame(body)])
        return FuzzInput((self._planted.fill(request),), Kind.FRAMED)

    def _headers(self, is_login: bool) -> list[bytes]:
        chance = self._rng.random
        lines = []
        if is_login or chance() < 0.2:
            kind = FORM if chance() < 0.85 else self._pick(CONTENT_TYPES)
            lines.append(b"Content-Type: " + kind)
        if chance() < (0.15 if is_login else 0.9):
            lines.append(b"Authorization: " + self._authorization())
        if chance() < 0.12:
            lines += [b"onbehalfof: " + self._pick(REPRESENTED)] * (2 if chance() < 0.05 else 1)
        if chance() < 0.15:
            lines.append(b"X-Forwarded-For: " + self._pick(ADDRESSES))
        if chance() < 0.2:
            lines.append(b"User-Agent: " + self._text(AGENTS))
        while chance() < 0.2:
            lines.append(self._pick(OTHER_HEADERS))
        return lines

    def _text(self, values: Sequence[bytes] = TEXTS) -> bytes:
        """One of these, or a secret where none should be, or any bytes that a header may have."""
        chance = self._rng.random()
        if chance < 0.15:
            secret = self._pick((place.CLIENT_SECRET, place.WRONG_SECRET, place.ACCESS_TOKEN))
            return self._disguised(self._planted.fill(secret))
        if chance < 0.3:
            return bytes(self._rng.choices(range(0x20, 0x7F), k=self._rng.randrange(40)))
        return self._pick(values)

    def _disguised(self, secret: bytes) -> bytes:
        ways = (
            *(secret[8:], secret[:20] + b" " + secret[20:]),
            b"".join(b"%%25%02x" % byte for byte in secret),
            *(b"Basic " + basic(self._planted.client_id, secret), b"Bearer " + secret, secret),
        )
        return self._pick(ways)

    def _authorization(self) -> bytes:
        chance = self._rng.random()
        if chance < 0.3:
            secret = self._pick((place.CLIENT_SECRET, place.WRONG_SECRET, b"", b"%zz", b"\xff"))
            return self._pick((b"Basic ", b"basic ", b"Basic  ")) + basic(place.CLIENT_ID, secret)
        if chance < 0.4:
            return b"Basic " + self._text()
        if chance < 0.55:
            return b"Bearer <access_token>"
        if chance < 0.9:
            return self._pick((b"Bearer ", b"Bearer ", b"DPoP ", b"dpop ")) + self._token()
        return self._text()

    def _token(self) -> bytes:
        parts = self._planted.access_token.split(b".")
        place_of_change = self._rng.randrange(3)
        if self._rng.random() < 0.5:
            parts[place_of_change] = basic(self._pick(JWT_HEADERS), b"").rstrip(b"=")
        else:
            changed = bytearray(parts[place_of_change])
            changed[self._rng.randrange(len(changed))] = self._pick(b"Aa0-_.=")
            parts[place_of_change] = bytes(changed)
        return b".".join(parts[: self._pick((1, 2, 3, 3, 3))])

    def _body(self) -> bytes:
        chance = self._rng.random
        if chance() < 0.04:
            return self._rng.randbytes(self._rng.randrange(200))
        if chance() < 0.004:
            return gzip.compress(_joined(self._fields()), mtime=0)
        if chance() < 0.004:
            return b"a=" + b"x" * self._pick((16_000, 17_000, 70_000))
        fields = self._fields()
        if chance() < 0.3:
            fields.append((b"scope", self._pick(SCOPES)))
        for _ in range(self._pick((0, 0, 1, 1, 2, 4))):
            self._change(fields)
        return _joined(fields)

    def _fields(self) -> list[tuple[bytes, bytes]]:
        secret = place.CLIENT_SECRET if self._rng.random() < 0.35 else place.WRONG_SECRET
        return [*_OWN_FIELDS, (b"client_secret", secret)]

    def _change(self, fields: list[tuple[bytes, bytes]]) -> None:
        way = self._rng.randrange(7)
        at = self._rng.randrange(len(fields)) if fields else 0
        if way == 0 or not fields:
            fields.append((self._pick(NAMES), self._text()))
        elif way == 1:
            fields.append(fields[at])
        elif way == 2:
            fields.pop(at)
        elif way == 3:
            fields[at] = fields[at][0], self._text()
        elif way == 4:
            fields[at] = (
                quote_from_bytes(fields[at][0], safe=b"").encode(),
                b"".join(b"%%%02X" % byte for byte in self._planted.fill(fields[at][1])),
            )
        elif way == 5:
            value = self._planted.fill(fields[at][1])
            fields[at] = fields[at][0], value[: self._rng.randrange(len(value) + 1)]
        else:
            self._rng.shuffle(fields)

    def _frame(self, body: bytes) -> bytes:
        body = self._planted.fill(body)
        if self._rng.random() > 0.1:
            return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        size = self._pick((1, 7, 100, 5_000))
        chunks = [body[start : start + size] for start in range(0, len(body), size)]
        extension = self._pick((b"", b";a=b", b';a="' + b"x" * 200 + b'"'))
        framed = b"".join(b"%x%b\r\n%b\r\n" % (len(chunk), extension, chunk) for chunk in chunks)
        trailer = self._pick((b"", b"", b"X: y\r\n", b"onbehalfof: <represented>\r\n"))
        return b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n" + trailer + b"\r\n"


def _joined(fields: list[tuple[bytes, bytes]]) -> bytes:
    return b"&".join(name + b"=" + value for name, value in fields)
