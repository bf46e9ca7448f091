"""The reference of a login, which ends every answer, and the login that it names (contract 5)."""

import re
from uuid import UUID

from tokens.models import LoginEvent

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


def reference_in(text: str) -> UUID | None:
    """The first reference anywhere in the text."""
    match = _UUID.search(text)
    return UUID(match[0]) if match else None


def find_login(text: str) -> LoginEvent | None:
    """The login whose reference is anywhere in the text, because people paste whole messages.

    None if no such login is recorded. Raises ValueError if the text has no reference.
    """
    key = reference_in(text)
    if key is None:
        raise ValueError(
            "There is no reference in it; one looks like 01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f."
        )
    return LoginEvent.objects.filter(pk=key).first()
