"""Taxpayer identifiers: TIN, ROB number, `<TIN>:<ROB>` (specification 2.3). Pure."""

import re
from functools import lru_cache

from taxpayers.value import Value

TIN_PATTERN, ROB_PATTERN = "[A-Z0-9]{5,20}", "[A-Z0-9-]{5,20}"  # unless a country has others


class MalformedIdentifier(ValueError):
    """No taxpayer identifier: the message says why; `text` is the message without its values."""

    def __init__(self, text: str, kind: str = "", pattern: str = "") -> None:
        super().__init__(text.format(kind=kind, pattern=pattern))
        self.text, self.kind, self.pattern = text, kind, pattern


class TaxpayerId(Value):
    """A taxpayer's name: a TIN, and a ROB number where there is one (`rob` is empty otherwise)."""

    tin: str
    rob: str = ""

    def __str__(self) -> str:
        return f"{self.tin}:{self.rob}" if self.rob else self.tin


class Notation(Value):
    """What a TIN and a ROB number look like in this country, as regular expressions."""

    tin: str = TIN_PATTERN
    rob: str = ROB_PATTERN

    def parse(self, text: str) -> TaxpayerId:
        """The taxpayer that `text` names; outer blanks are trimmed, letters upper-cased.

        Raises MalformedIdentifier for anything but `<TIN>` or `<TIN>:<ROB>`.
        """
        tin, separator, rob = text.strip(" \t").partition(":")
        if not separator:
            return self.parse_parts(tin)
        if not rob:
            raise MalformedIdentifier("there is no ROB number after the colon")
        return self.parse_parts(tin, rob)

    def parse_parts(self, tin: str, rob: str = "") -> TaxpayerId:
        """The taxpayer named by a TIN and, unless it is empty, a ROB number. Raises as `parse`."""
        return TaxpayerId(
            _normalise("TIN", tin, self.tin), _normalise("ROB number", rob, self.rob) if rob else ""
        )


def _normalise(kind: str, text: str, pattern: str) -> str:
    # Upper-casing turns some letters outside ASCII into ASCII ones, so those are refused first.
    normalised = text.upper() if text.isascii() else ""
    if not normalised:
        raise MalformedIdentifier("a {kind} is missing or has letters outside A-Z", kind)
    if not _compiled(pattern).fullmatch(normalised):
        raise MalformedIdentifier("the {kind} does not have the form {pattern}", kind, pattern)
    return normalised


@lru_cache(maxsize=8)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
