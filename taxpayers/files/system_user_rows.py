"""System users in a file: `taxpayer`, `name`, and optionally scopes, limit and last day.

Never an id or a secret: both are generated (contract 3).
"""

from datetime import datetime
from functools import partial

from django.utils.translation import gettext as _

from taxpayers.files.csv_reader import CsvRow
from taxpayers.files.rows import Columns, last_moment, read_file, words
from taxpayers.identifiers import Notation, TaxpayerId
from taxpayers.moments import format_moment
from taxpayers.validation import ServiceError, validate_name
from taxpayers.value import Value

_MAX_DIGITS = 9  # of a number; more than the service allows
# An export has them, and an import cannot set them: without them a system user may do more.
_NARROWING = ("token_binding", "allowed_permissions", "allowed_taxpayers", "only_on_behalf")
_OF_CREDENTIALS = ("", "_kind", "_name", "_expires_at", "_last_used_at", "_allowed_networks")
COLUMNS = Columns(
    ("taxpayer", "name"),
    ("scopes", "logins_per_minute", "expires_at"),
    ignored=(
        *("client_id", "taxpayer_name", "registered_at"),
        *("blocked_at", "blocked_by", "blocked_reason"),
        *("state", "last_used_at", "login_method", *_NARROWING),
        *(f"credential_{number}{name}" for number in (1, 2) for name in _OF_CREDENTIALS),
    ),
)


class SystemUserRow(Value):
    """One system user of the file; None: the default."""

    line: int
    taxpayer: TaxpayerId
    name: str
    scopes: tuple[str, ...] | None = None
    logins_per_minute: int | None = None
    expires_at: datetime | None = None

    @property
    def key(self) -> str:
        return f"{self.taxpayer} {self.name}"

    @property
    def named(self) -> tuple[TaxpayerId, ...]:
        """The taxpayers that must be registered."""
        return (self.taxpayer,)

    @property
    def shown(self) -> tuple[str, ...]:
        return (
            str(self.taxpayer),
            self.name,
            " ".join(self.scopes or ()),
            "" if self.logins_per_minute is None else str(self.logins_per_minute),
            format_moment(self.expires_at) if self.expires_at else "",
        )


def _parse(row: CsvRow, notation: Notation) -> SystemUserRow:
    for column in _NARROWING:
        if row.cells.get(column, "") not in ("", "none", "no"):
            raise ServiceError(
                _(
                    "an import cannot set {column}: remove the row, or empty the cell, and set it"
                    " on the page of the system user"
                ).format(column=column)
            )
    return SystemUserRow(
        line=row.line,
        taxpayer=notation.parse(row.cells["taxpayer"]),
        name=validate_name(row.cells["name"]),
        scopes=tuple(words(row, "scopes")) or None,
        logins_per_minute=_number(row.cells.get("logins_per_minute", "")),
        expires_at=last_moment(row, "expires_at"),
    )


def _number(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise ServiceError(
            _("logins_per_minute must be a number, not {given}").format(given=repr(text[:20]))
        )
    return int(text)


read_system_users = partial(read_file, columns=COLUMNS, parse=_parse)
