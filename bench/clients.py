"""The clients of the benchmark: the id and secret of each follow from its number (contract 3).

So whoever sends requests need not remember what was registered, however many clients there are.
"""

import zlib
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Role(StrEnum):
    """What a client is registered for; the TIN of its taxpayer begins with the letter."""

    TAXPAYER = "C"
    INTERMEDIARY = "I"
    BLOCKED = "B"
    RATE_LIMITED = "L"  # logs in far too often


@dataclass(frozen=True, slots=True)
class Population:
    """How many clients of each role there are in a registry with so many taxpayers."""

    taxpayers: int

    def count(self, role: Role) -> int:
        return self.taxpayers if role is Role.TAXPAYER else max(1, self.taxpayers // 100)

    def first_id(self, role: Role) -> int:
        """The primary key of the role's number 0: that of its taxpayer, system user and secret."""
        roles = list(Role)
        return 1 + sum(self.count(other) for other in roles[: roles.index(role)])

    def intermediary_of(self, taxpayer: int) -> int:
        """The number of the intermediary that this taxpayer permits to act for it."""
        return taxpayer % self.count(Role.INTERMEDIARY)

    def logins_per_minute(self, role: Role) -> int:
        # Where few clients share the full load, their logins are counted but the limit is far.
        is_many = role is Role.TAXPAYER and self.taxpayers >= 100_000
        return 12 if is_many or role is Role.RATE_LIMITED else 1_000_000


def tin(role: Role, number: int) -> str:
    """The TIN of the taxpayer to which this client belongs."""
    return f"{role}{number:010}"


def client_id(role: Role, number: int) -> str:
    """A well-formed client id of the test environment."""
    return _credential("ci", role, number, 22)


def client_secret(role: Role, number: int) -> str:
    """A well-formed client secret of the test environment: good for a benchmark only."""
    return _credential("cs", role, number, 43)


def _credential(kind: str, role: Role, number: int, length: int) -> str:
    digest = sha256(f"{kind} {role} {number}".encode()).hexdigest()
    text = f"{kind}_test_{digest[:length]}"
    checksum = zlib.crc32(text.encode())
    return text + "".join(_DIGITS[checksum // 62**place % 62] for place in range(5, -1, -1))
