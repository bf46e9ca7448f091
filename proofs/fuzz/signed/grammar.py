"""Assertions, DPoP proofs and the headers of certificates: right ones, and what is almost right.

Right ones are placeholders (`planted`), which are filled when they are sent.
"""

from collections.abc import Sequence
from random import Random

from proofs.fuzz import planted as place
from proofs.fuzz.planted import Planted
from proofs.fuzz.signed.certificates import certificates, escaped_pem, rfc9440
from proofs.fuzz.signed.signer import OTHER, RIGHT, encode, raw_object

_ALGORITHMS = (
    *(b'"none"', b'"None"', b'"HS256"', b'"RS256"', b'"ES256"', b'"PS256"', b'"Ed25519"', b'""'),
    *(b"null", b'["EdDSA"]', b'"EdDSA\\u0000"', b'"eddsa"'),
)
_KEYS = (
    b'{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}',
    b'{"kty":"EC","crv":"P-256","x":"%b","y":"%b"}' % (b"_" * 43, b"_" * 43),
    b'{"kty":"EC","crv":"P-256","x":null,"y":[]}',
    b'{"kty":"EC","crv":"P-521","x":"AA","y":"AA"}',
    b'{"kty":"RSA","n":"%b","e":"AQAB"}' % (b"_" * 342),
    b'{"kty":"RSA","n":"%b","e":"AQAB"}' % (b"_" * 341 + b"A"),
    b'{"kty":"RSA","n":"%b","e":"%b"}' % (b"_" * 342, b"_" * 342),
    *(b'{"kty":"RSA","n":"AQAB","e":"AQAB"}', b'{"kty":"OKP","crv":"Ed25519","x":"AA"}'),
    b'{"kty":"OKP","crv":"Ed25519","x":"%b"}' % (b"A" * 43),
    b'{"kty":"OKP","crv":"X25519","x":"%b"}' % (b"A" * 43),
    *(b'{"kty":"OKP","crv":"Ed25519","x":"\\ud800"}', b'{"kty":"oct","k":"AA"}'),
    *(b'{"kty":["OKP"],"crv":{}}', b'"x"', b"[]", b"null"),
)
_VALUES = (
    *(b"null", b"true", b"-1", b"0", b"1e308", b"-1e308", b"1e999", b"9" * 400, b'""', b'"x"'),
    *(b"[]", b"{}", b'"\\u0000"', b'"\\ud800"', b'"\xf0\x9f\x98\x80"', b'"\xff"', b"NaN", b"x"),
    *(b'"' + b"a" * 129 + b'"', b'["x","y"]', b'{"x":["y"]}', b"1.5", b'"1"'),
)
_TARGETS = (
    *(b'"http://127.0.0.1"', b'"https://x/connect/token"', b'"//"', b'"http://[::1/connect"'),
    *(b'"http://127.0.0.1:99999/connect/token"', b'"/connect/token"', b'"http://\\u0130/"'),
    *(b'"HTTP://127.0.0.1/connect/%74oken"', b'"http://a@127.0.0.1/"', b'"http://x:\xd9\xa3/"'),
)
_HUGE = (3_000, 3_100, 5_000, 12_000)
_VERIFIED = (b"SUCCESS", b"NONE", b"FAILED:expired", b"FAILED", b"", b"success", b"SUCCESS, NONE")
_DEEP = range(2, 1_100)


def new_jti(rng: Random) -> str:
    """An identifier that nothing else has."""
    return rng.randbytes(8).hex()


class ProofGrammar:
    """Makes values of `client_assertion`, of the header DPoP and of the headers of nginx."""

    def __init__(self, rng: Random, planted: Planted) -> None:
        self._rng = rng
        self._planted = planted
        self._sent: list[bytes] = []  # placeholders to send again

    def assertion(self) -> bytes:
        """A right one, one that was sent before, or one that is wrong in one place or two."""
        way = self._rng.random()
        if way < 0.4:
            return self._new(place.assertion(new_jti(self._rng)))
        if way < 0.5 and self._sent:
            return self._rng.choice(self._sent)
        planted = self._planted
        header, claims = planted.assertion_members(new_jti(self._rng), planted.now)
        return self._wrong(header, claims, audience="aud")

    def proof(self, path: bytes = b"") -> bytes:
        """The same for DPoP; `path` is of a protected API, empty: of a login."""
        way, planted = self._rng.random(), self._planted
        if way < 0.45:
            return self._new(place.proof(new_jti(self._rng), path))
        if way < 0.55 and self._sent:
            return self._rng.choice(self._sent)
        header, claims = planted.proof_members(
            *(new_jti(self._rng), path.decode("latin-1"), planted.now, planted.learned.nonce)
        )
        if way < 0.7:
            deep = b'{"kty":"OKP","crv":"Ed25519","x":%b}' % _deep(self._rng)
            header["jwk"] = self._pick((*_KEYS, deep, deep))
            header["alg"] = self._pick((b'"ES256"', b'"PS256"', b'"EdDSA"'))
            size = self._rng.choice((0, 1, 64, 64, 256, 256, 512))
            signature = self._pick((b"\0", b"\xff", b"x")) * size
            return b".".join(map(encode, (raw_object(header), raw_object(claims), signature)))
        return self._wrong(header, claims, audience="htu")

    def certificate_headers(self) -> list[bytes]:
        """As nginx sends them, or RFC 9440; right, or almost."""
        chance, rng = self._rng.random, self._rng
        verified = b"SUCCESS" if chance() < 0.8 else rng.choice(_VERIFIED)
        is_right, is_nginx = chance() < 0.35, chance() < 0.6
        if is_nginx:
            value = place.CERTIFICATE if is_right else escaped_pem(self._wrong_certificate())
        else:
            value = place.CLIENT_CERT if is_right else rfc9440(self._wrong_certificate())
        if chance() < 0.1:
            value = value[: rng.randrange(len(value))]
        line = (b"SSL-Client-Cert: " if is_nginx else b"Client-Cert: ") + value
        lines = [b"SSL-Client-Verify: " + verified, line]
        if chance() < 0.05:
            lines.append(rng.choice(lines))
        if chance() < 0.05:
            lines.append(b"Client-Cert: " + place.CLIENT_CERT)
        if chance() < 0.05:
            lines.pop(rng.randrange(len(lines)))
        if chance() < 0.03:
            lines = [line.replace(b"-", b"_", 2) for line in lines]
        return lines

    def _pick(self, values: Sequence[bytes]) -> bytes:
        return self._rng.choice(values)

    def _new(self, placeholder: bytes) -> bytes:
        self._sent = [*self._sent[-50:], placeholder]
        return placeholder

    def _wrong(self, header: dict[str, bytes], claims: dict[str, bytes], *, audience: str) -> bytes:
        rng, signer = self._rng, RIGHT
        way = rng.randrange(9)
        if way == 0:
            signer = OTHER
        elif way == 1:
            claims[audience] = self._pick(_TARGETS)
        elif way == 2:
            header["alg"] = rng.choice(_ALGORITHMS)
        elif way == 3:
            members = rng.choice((header, claims))
            members[rng.choice([*members, "crit", "nbf", "ath"])] = rng.choice(_VALUES)
        elif way == 4:
            members = rng.choice((header, claims))
            members[rng.choice([*members, "x", "crit"])] = _deep(rng)
        elif way == 5:
            claims["x"] = b'"%b"' % (b"y" * rng.choice(_HUGE))
        elif way == 6:
            members = rng.choice((header, claims))
            members.pop(rng.choice([*members]))
        whole = signer.sign(raw_object(header), raw_object(claims))
        return self._cut(whole) if way >= 7 else whole

    def _cut(self, whole: bytes) -> bytes:
        """With one part that is changed, cut off or left out, or with one more."""
        rng, parts = self._rng, whole.split(b".")
        at = rng.randrange(3)
        way = rng.randrange(5)
        if way == 0:
            changed = bytearray(parts[at])
            changed[rng.randrange(len(changed))] = rng.choice(b"Aa0-_=+ \xff")
            parts[at] = bytes(changed)
        elif way == 1:
            parts[at] = parts[at][: rng.randrange(len(parts[at]))]
        elif way == 2:
            parts[at] = b""
        elif way == 3:
            parts.insert(at, parts[rng.randrange(3)])
        else:
            parts.pop(at)
        return b".".join(parts)

    def _wrong_certificate(self) -> bytes:
        """DER, mostly of another certificate or with a few changed bytes."""
        rng = self._rng
        der = bytearray(rng.choice(certificates()))
        for _ in range(rng.choice((0, 1, 1, 2, 4))):
            der[rng.randrange(len(der))] = rng.choice((0, 1, 2, 0x30, 0xA3, 0xA5, 0xFF, 0x80))
        way = rng.random()
        if way < 0.08:
            return bytes(der[: rng.randrange(len(der))])
        if way < 0.12:
            return bytes(der * rng.choice((2, 20)))
        return bytes(der)


def _deep(rng: Random) -> bytes:
    """JSON within JSON: also about as deep as a parser goes."""
    depth = rng.choice((rng.choice(_DEEP), rng.randrange(880, 1_000)))
    return b"[" * depth + b"]" * depth
