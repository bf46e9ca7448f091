"""The clients of the benchmark: id, secret and key of each follow from its number (contract 3).

So the sender of requests need not remember what was registered, however many clients there are.
"""

import zlib
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    derive_private_key,
)

# So many clients of a role have logged in before their logins are measured.
_MET = 100_000
# Fewer would meet at one row of the database, however many connections there are.
_FEWEST = 64
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Role(StrEnum):
    """What a client is registered for."""

    TAXPAYER = "taxpayer"
    INTERMEDIARY = "intermediary"
    BLOCKED = "blocked"
    RATE_LIMITED = "rate limited"  # logs in far too often
    PRIVATE_KEY = "private key"  # logs in with private_key_jwt


@dataclass(frozen=True, slots=True)
class Population:
    """The clients of a registry with so many taxpayers; of each other role one in a hundred, or 64.

    The key of a client's taxpayer, system user and secret is its number.
    """

    taxpayers: int

    def numbers(self, role: Role) -> range:
        """The numbers of the clients of this role."""
        if role is Role.TAXPAYER:
            return range(1, self.taxpayers + 1)
        count = max(_FEWEST, self.taxpayers // 100)
        start = self.taxpayers + 1 + count * (list(Role).index(role) - 1)
        return range(start, start + count)

    def met(self, role: Role) -> range:
        """Clients whose logins are measured again and again: every other one, 100,000 at most."""
        numbers = self.numbers(role)[::2]
        return numbers[:: -(-len(numbers) // _MET)]

    def unmet(self, role: Role) -> range:
        """All that are not among these."""
        return self.numbers(role)[1::2]

    def intermediary_of(self, taxpayer: int) -> int:
        """The number of the intermediary that this taxpayer permits to act for it."""
        intermediaries = self.numbers(Role.INTERMEDIARY)
        return intermediaries[taxpayer % len(intermediaries)]

    def logins_per_minute(self, role: Role) -> int:
        # Where few clients share the full load, their logins are counted but the limit is far.
        is_many = role is Role.TAXPAYER and self.taxpayers >= 100_000
        return 12 if is_many or role is Role.RATE_LIMITED else 1_000_000


def tin(number: int) -> str:
    """The TIN of the taxpayer to which this client belongs."""
    return f"C{number:010}"


def client_id(number: int) -> str:
    """A well-formed client id of the test environment."""
    return _credential("ci", number, 22)


def client_secret(number: int) -> str:
    """A well-formed client secret of the test environment: good for a benchmark only."""
    return _credential("cs", number, 43)


def private_key(number: int) -> EllipticCurvePrivateKey:
    """The key of a client without a secret."""
    return derive_private_key(number, SECP256R1())


def kid(number: int) -> str:
    """The name of that key."""
    return f"key-{number}"


def _credential(kind: str, number: int, length: int) -> str:
    text = f"{kind}_test_{sha256(f'{kind} {number}'.encode()).hexdigest()[:length]}"
    checksum = zlib.crc32(text.encode())
    return text + "".join(_DIGITS[checksum // 62**place % 62] for place in range(5, -1, -1))


API_ID, API_SECRET = _credential("pa", 0, 22), _credential("ps", 0, 43)
