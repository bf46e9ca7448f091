"""The reference that ends every answer, and its login, or why none is recorded (contract 5)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from uuid import UUID

from django.utils.translation import gettext_noop as _

from tokens.models import LoginEvent

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


def reference_in(text: str) -> UUID | None:
    """The first reference anywhere in the text, because people paste whole messages."""
    match = _UUID.search(text)
    return UUID(match[0]) if match else None


_BEGINNING = re.compile(r"0[0-9a-f]{7,30}")  # of a UUID of version 7 until the year 2527


def beginning_of_reference(text: str) -> tuple[UUID, UUID] | None:
    """The first and the last reference that begin so; None: fewer than 8 characters, or no part."""
    part = text.replace("-", "").lower()
    if not _BEGINNING.fullmatch(part):
        return None
    return UUID(part.ljust(32, "0")), UUID(part.ljust(32, "f"))


_CLOCKS_DIFFER = timedelta(minutes=5)


class Cause(Enum):
    """Why there is no record; each value explains it. `{made}` and `{oldest}` are moments."""

    NOT_OURS = _("No record: this is not a reference of this service, or a part of it is wrong.")
    FUTURE = _(
        "No record: this reference names a time in the future ({made}). It is mistyped, or another"
        " service made it."
    )
    DELETED = _(
        "No record: this reference was made at {made}. The oldest stored login is of {oldest};"
        " older ones were deleted."
    )
    NOT_STORED = _(
        "No record: this reference was made at {made}. Logins that a limit refused (429), logins"
        " while the service was unavailable (503) and the first request of a login with DPoP"
        " (use_dpop_nonce) leave no record."
    )


_SEND_ALL_OF_IT = _("Please copy the whole error message of your ERP system and send it again.")
CALLER_TEXTS: Mapping[Cause, str] = {
    Cause.NOT_OURS: _SEND_ALL_OF_IT,
    Cause.FUTURE: _SEND_ALL_OF_IT,
    Cause.DELETED: _("Please log in again, and send the reference of the new error message."),
    Cause.NOT_STORED: _(
        "Your ERP system sent too many logins, or the service was unavailable for a short time."
        " Wait as long as Retry-After says, then try again. Reuse a token until shortly before it"
        " expires, and wait longer after each failure."
    ),
}


@dataclass(frozen=True, slots=True)
class MissingLogin:
    """Why there is no login with this reference, when it was made, and the oldest stored login."""

    cause: Cause
    made_at: datetime | None = None
    oldest_at: datetime | None = None


def made_at(reference: UUID) -> datetime | None:
    """When this UUIDv7 was made (RFC 9562 section 5.7); None if it is not one with a date."""
    if reference.version != 7:
        return None
    try:
        return datetime.fromtimestamp((reference.int >> 80) / 1000, UTC)
    except (ValueError, OverflowError):  # later than the year 9999
        return None


def cause_of(made: datetime | None, oldest: datetime | None, at: datetime) -> Cause:
    """Why a reference of that moment has no record; `oldest` is the oldest stored login. Pure."""
    if made is None:
        return Cause.NOT_OURS
    if made > at + _CLOCKS_DIFFER:
        return Cause.FUTURE
    if oldest is not None and made < oldest:
        return Cause.DELETED
    return Cause.NOT_STORED


def oldest_login() -> datetime | None:
    """When the oldest login that is stored happened."""
    return LoginEvent.objects.order_by("pk").values_list("at", flat=True).first()


def explain_missing(reference: UUID, at: datetime) -> MissingLogin:
    """Why no login with this reference is recorded."""
    made, oldest = made_at(reference), oldest_login()
    return MissingLogin(cause_of(made, oldest, at), made, oldest)
