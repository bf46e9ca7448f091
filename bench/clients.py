"""The clients of the benchmark: each one's id and secret follow from its number (contract 3).

The registry is filled by one process and asked by another; nothing has to be remembered between
them, however many clients there are.
"""

import zlib
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Literal

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Role(StrEnum):
    """What a client is registered for; the letter begins its taxpayer's TIN."""

    TAXPAYER = "C"
    INTERMEDIARY = "I"
    BLOCKED = "B"
    LIMITED = "L"  # logs in far too often


@dataclass(frozen=True, slots=True)
class Population:
    """How many clients of each role there are when `taxpayers` is the size of the registry."""

    taxpayers: int

    def count(self, role: Role) -> int:
        return self.taxpayers if role is Role.TAXPAYER else max(1, self.taxpayers // 100)

    def first_id(self, role: Role) -> int:
        """The primary key of the role's number 0: its taxpayer's, system user's and secret's."""
        before = [other for other in Role if list(Role).index(other) < list(Role).index(role)]
        return 1 + sum(self.count(other) for other in before)

    def intermediary_of(self, taxpayer: int) -> int:
        """The number of the intermediary that this taxpayer permits to act for it."""
        return taxpayer % self.count(Role.INTERMEDIARY)

    def logins_per_minute(self, role: Role) -> int:
        # Where few clients share the full load, their limit is counted but not reached.
        is_many = role is Role.TAXPAYER and self.taxpayers >= 100_000
        return 12 if is_many or role is Role.LIMITED else 1_000_000


def tin(role: Role, number: int) -> str:
    """The TIN of the taxpayer against which this client is registered."""
    return f"{role}{number:010}"


def client_id(role: Role, number: int) -> str:
    """A well-formed client id of the test environment."""
    return _credential("ci", role, number, 22)


def client_secret(role: Role, number: int) -> str:
    """A well-formed client secret of the test environment: good for a benchmark only."""
    return _credential("cs", role, number, 43)


def _credential(kind: Literal["ci", "cs"], role: Role, number: int, length: int) -> str:
    digest = sha256(f"{kind} {role} {number}".encode()).hexdigest()
    text = f"{kind}_test_{digest[:length]}"
    return text + _base62(zlib.crc32(text.encode()))


def _base62(number: int) -> str:
    digits = ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _DIGITS[digit] + digits
    return digits
