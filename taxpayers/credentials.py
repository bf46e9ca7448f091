"""Client ids and client secrets: generate, recognise, hash, compare (contract 3). Pure.

A credential is `<kind>_<environment>_<random><checksum>`, for example `cs_live_…`: letters,
digits and `_` only. The checksum lets a damaged one be named without a query, and lets scanners
tell a leaked one from chance.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Environment = Literal["live", "test"]

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CHECKSUM_LENGTH = 6  # 62**6 > 2**32: holds a CRC-32
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]
_HASH = "sha256"
_QUOTES = "\"'`\u2018\u2019\u201c\u201d\u00ab\u00bb\ufeff"  # and the byte order mark


class Prefix(StrEnum):
    """What it begins with, which says what it is."""

    CLIENT_ID = "ci"
    CLIENT_SECRET = "cs"
    API_ID = "pa"  # of a protected API, which asks about tokens and gets none
    API_SECRET = "ps"


IDS = (Prefix.CLIENT_ID, Prefix.API_ID)
_PAIRED = {
    Prefix.CLIENT_ID: Prefix.CLIENT_SECRET,
    Prefix.CLIENT_SECRET: Prefix.CLIENT_ID,
    Prefix.API_ID: Prefix.API_SECRET,
    Prefix.API_SECRET: Prefix.API_ID,
}
# 22 digits hold 128 bits, 43 hold 256.
_BITS = {kind: 128 if kind in IDS else 256 for kind in Prefix}
_LENGTH = {kind: 22 if kind in IDS else 43 for kind in Prefix}
_FORM = re.compile(
    r"(?P<kind>ci|cs|pa|ps)_(?P<environment>live|test)_(?P<body>[0-9A-Za-z]+)", re.ASCII
)


class Fault(StrEnum):
    """What is wrong with the form of a credential."""

    BLANKS = "blanks"
    QUOTED = "quoted"
    SWAPPED = "swapped"
    OTHER_PARTY = "other_party"
    OTHER_ENVIRONMENT = "other_environment"
    PLACEHOLDER = "placeholder"
    CUT_OFF = "cut_off"
    MISTYPED = "mistyped"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A new pair. The secret is in clear: show it to its owner once and store only its hash."""

    client_id: str
    client_secret: str

    def __repr__(self) -> str:
        return f"Credentials({self.client_id}, secret not shown)"


def new_client_id(environment: Environment, kind: Prefix = Prefix.CLIENT_ID) -> str:
    """A new random client id of this environment."""
    return _from_number(kind, environment, secrets.randbits(_BITS[kind]))


def new_client_secret(environment: Environment, kind: Prefix = Prefix.CLIENT_SECRET) -> str:
    """A new random client secret (256 bits) of this environment, in clear."""
    return _from_number(kind, environment, secrets.randbits(_BITS[kind]))


def public_credentials(name: str) -> Credentials:
    """Credentials that everybody can compute from this name: only for the sandbox of `test`."""
    return Credentials(
        _from_number(Prefix.CLIENT_ID, "test", _public_number(f"client_id {name}")),
        _from_number(Prefix.CLIENT_SECRET, "test", _public_number(f"client_secret {name}")),
    )


def fault_of(text: str, kind: Prefix, environment: Environment) -> Fault | None:
    """Why `text` cannot be a credential of this kind and environment; None if it could be one."""
    # The common case first: one expression and one checksum.
    match = _FORM.fullmatch(text)
    if match is None:
        return _fault_of_shape(text, kind)
    sent_kind, sent_environment, body = match.groups()
    if sent_kind != kind:
        return Fault.SWAPPED if sent_kind == _PAIRED[kind] else Fault.OTHER_PARTY
    missing = _LENGTH[kind] + _CHECKSUM_LENGTH - len(body)
    if missing > 0:
        return Fault.PLACEHOLDER if _is_placeholder_body(body) else Fault.CUT_OFF
    if missing < 0:
        return Fault.MISTYPED
    if _checksum(text[:-_CHECKSUM_LENGTH]) != text[-_CHECKSUM_LENGTH:]:
        return Fault.PLACEHOLDER if _is_placeholder_body(body) else Fault.MISTYPED
    if sent_environment != environment:
        return Fault.OTHER_ENVIRONMENT
    return None


def is_client_id(text: str, kind: Prefix = Prefix.CLIENT_ID) -> bool:
    """Whether it has the form of such an id of either environment, and its checksum is right."""
    return fault_of(text, kind, "live") in (None, Fault.OTHER_ENVIRONMENT)


def hash_secret(client_secret: str) -> str:
    """What is stored of a secret: `sha256$…`. Fast, as 256 random bits cannot be guessed anyway."""
    return f"{_HASH}${hashlib.sha256(client_secret.encode()).hexdigest()}"


def is_same_secret(hashed: str, stored: str) -> bool:
    """Whether two results of `hash_secret` are of the same secret, in constant time."""
    return hmac.compare_digest(hashed, stored)


HINT_LENGTH = 4


def hint_of(client_secret: str) -> str:
    """The last four characters: enough for its owner to recognise a secret, useless to others."""
    return client_secret[-HINT_LENGTH:]


def _fault_of_shape(text: str, kind: Prefix) -> Fault:
    bare = text.strip()
    if bare != text and _FORM.fullmatch(bare):
        return Fault.BLANKS
    if _FORM.fullmatch(bare.strip(_QUOTES).strip()):
        return Fault.QUOTED
    if bare.startswith(f"{_PAIRED[kind]}_"):
        return Fault.SWAPPED
    if _is_placeholder(bare):
        return Fault.PLACEHOLDER
    if bare.startswith(f"{kind}_"):
        return Fault.CUT_OFF if len(bare) < len(f"{kind}_live_") + _LENGTH[kind] else Fault.MISTYPED
    return Fault.FOREIGN


_PLACEHOLDER = re.compile(
    r"[<{\[$%].*|.*[>}\]]|.*\.\.\.|.*…|x{3,}|\*{3,}|0{3,}"
    r"|.*(your|change.?me|example|placeholder|replace|client.?id|client.?secret|todo|dummy|sample).*",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)


def _is_placeholder(text: str) -> bool:
    # A short prefix is enough, and bounds the work on a hostile text.
    return _PLACEHOLDER.fullmatch(text[:128]) is not None


def _is_placeholder_body(body: str) -> bool:
    # Random characters can spell "your" or "todo" too: then there are digits among them.
    return _is_placeholder(body) and (body.isalpha() or len(set(body)) == 1)


def _from_number(kind: Prefix, environment: Environment, number: int) -> str:
    body = f"{kind}_{environment}_{_digits(number % (1 << _BITS[kind]), _LENGTH[kind])}"
    return body + _checksum(body)


def _public_number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest())


def _checksum(text: str) -> str:
    # As `_digits` does it, with two digits at a time: each login checks two of them.
    rest, low = divmod(zlib.crc32(text.encode()), len(_PAIRS))
    high, middle = divmod(rest, len(_PAIRS))
    return _PAIRS[high] + _PAIRS[middle] + _PAIRS[low]


def _digits(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
