"""What the rows of a file are: taxpayers, intermediaries, permissions, system users (contract 6).

Never an ID or a secret of a system user: both are generated (contract 3).
"""

from datetime import datetime

from taxpayers.evidence import Evidence, on_paper
from taxpayers.files.csv_reader import CsvRow
from taxpayers.files.rows import (
    Columns,
    Row,
    cell_of,
    first_moment,
    last_moment,
    words,
    yes_or_no,
)
from taxpayers.identifiers import Notation, TaxpayerId
from taxpayers.validation import ServiceError, validate_name

MAX_TAXPAYERS = 500_000


class TaxpayerRow(Row):
    """One taxpayer of the file. `is_active` is None if its cell is empty or missing."""

    name: str
    is_active: bool | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        active = "no" if self.is_active is False else "yes"
        return self.taxpayer.tin, self.name, self.taxpayer.rob, active


def _taxpayer(row: CsvRow, notation: Notation) -> TaxpayerRow:
    is_active = yes_or_no(row, "active")
    return TaxpayerRow(
        line=row.line,
        taxpayer=notation.parse_parts(row.cells["tin"], row.cells.get("rob", "")),
        name=validate_name(row.cells["name"]),
        is_active=is_active,
    )


TAXPAYERS = Columns(_taxpayer, ("tin", "name"), ("rob", "active"), ignored=("registered_at",))


# --- Intermediaries -----------------------------------------------------------------------------


class IntermediaryRow(Row):
    """One intermediary of the file; without a last moment it has no end."""

    until: datetime | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        return self.taxpayer.tin, self.taxpayer.rob, cell_of(self.until)


def _intermediary(row: CsvRow, notation: Notation) -> IntermediaryRow:
    if yes_or_no(row, "active") is False:
        # An export has those that are not active too: to import it must not make them active.
        raise ServiceError("it is not active: remove the row")
    return IntermediaryRow(
        line=row.line,
        taxpayer=notation.parse_parts(row.cells["tin"], row.cells.get("rob", "")),
        until=last_moment(row, "active_until"),
    )


INTERMEDIARIES = Columns(
    _intermediary,
    ("tin",),
    ("rob", "active_until"),
    ignored=("name", "active", "registered_at", "taxpayer_active"),
)


# --- Permissions --------------------------------------------------------------------------------


class PermissionRow(Row):
    """One permission of the file; without a first moment it begins when it is imported."""

    intermediary: TaxpayerId
    codes: tuple[str, ...]
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    evidence: Evidence | None = None

    @property
    def key(self) -> str:
        return f"{self.taxpayer} → {self.intermediary}: {' '.join(self.codes)}"

    @property
    def named(self) -> tuple[TaxpayerId, ...]:
        return self.taxpayer, self.intermediary


def _permission(row: CsvRow, notation: Notation) -> PermissionRow:
    if row.cells.get("revoked_at"):
        # An export has revoked permissions too: to import it must not grant them again.
        raise ServiceError("it is revoked: remove the row, or empty the cell revoked_at")
    return PermissionRow(
        line=row.line,
        taxpayer=notation.parse(row.cells["taxpayer"]),
        intermediary=notation.parse(row.cells["intermediary"]),
        codes=tuple(sorted(set(words(row, "codes")))),
        valid_from=first_moment(row, "valid_from"),
        valid_until=last_moment(row, "valid_until"),
        evidence=on_paper(form) if (form := row.cells.get("paper_form", "")) else None,
    )


PERMISSIONS = Columns(
    _permission,
    ("taxpayer", "intermediary", "codes"),
    ("valid_from", "valid_until", "paper_form"),
    ignored=("taxpayer_name", "intermediary_name", "revoked_at", "granted_at", "evidence"),
)


# --- System users -------------------------------------------------------------------------------

_MAX_DIGITS = 9  # of a number; more than the service allows
# An export has them, and an import cannot set them: without them a system user may do more.
_NARROWING = ("token_binding", "allowed_permissions", "allowed_taxpayers", "only_on_behalf")
_OF_CREDENTIALS = ("", "_kind", "_name", "_expires_at", "_last_used_at", "_allowed_networks")


class SystemUserRow(Row):
    """One system user of the file; None: the default."""

    name: str
    scopes: tuple[str, ...] | None = None
    logins_per_minute: int | None = None
    expires_at: datetime | None = None

    @property
    def key(self) -> str:
        return f"{self.taxpayer} {self.name}"


def _system_user(row: CsvRow, notation: Notation) -> SystemUserRow:
    for column in _NARROWING:
        if row.cells.get(column, "") not in ("", "none", "no"):
            raise ServiceError(
                "an import cannot set {column}: remove the row, or empty the cell, and set it"
                " on the page of the system user",
                column=column,
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
        raise ServiceError("logins_per_minute must be a number, not {given}", given=repr(text[:20]))
    return int(text)


SYSTEM_USERS = Columns(
    _system_user,
    ("taxpayer", "name"),
    ("scopes", "logins_per_minute", "expires_at"),
    ignored=(
        *("client_id", "taxpayer_name", "registered_at"),
        *("blocked_at", "blocked_by", "blocked_reason"),
        *("state", "last_used_at", "login_method", *_NARROWING),
        *(f"credential_{number}{name}" for number in (1, 2) for name in _OF_CREDENTIALS),
    ),
)
