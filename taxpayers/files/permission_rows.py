"""Permissions in a file: `taxpayer`, `intermediary`, `codes`, and optionally two dates."""

from datetime import datetime
from functools import partial

from django.utils.translation import gettext as _

from taxpayers.evidence import Evidence, on_paper
from taxpayers.files.csv_reader import CsvRow
from taxpayers.files.rows import Columns, first_moment, last_moment, read_file, words
from taxpayers.identifiers import Notation, TaxpayerId
from taxpayers.moments import format_moment
from taxpayers.validation import ServiceError
from taxpayers.value import Value

COLUMNS = Columns(
    ("taxpayer", "intermediary", "codes"),
    ("valid_from", "valid_until", "paper_form"),
    ignored=("taxpayer_name", "intermediary_name", "revoked_at", "granted_at", "evidence"),
)


class PermissionRow(Value):
    """One permission of the file; without a first moment it begins when it is imported."""

    line: int
    taxpayer: TaxpayerId
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
        """The taxpayers that must be registered."""
        return self.taxpayer, self.intermediary

    @property
    def shown(self) -> tuple[str, ...]:
        dates = (self.valid_from, self.valid_until)
        return (
            str(self.taxpayer),
            str(self.intermediary),
            " ".join(self.codes),
            *(format_moment(date) if date else "" for date in dates),
            self.evidence.paper_form if self.evidence else "",
        )


def _parse(row: CsvRow, notation: Notation) -> PermissionRow:
    if row.cells.get("revoked_at"):
        # An export has revoked permissions too: to import it must not grant them again.
        raise ServiceError(_("it is revoked: remove the row, or empty the cell revoked_at"))
    return PermissionRow(
        line=row.line,
        taxpayer=notation.parse(row.cells["taxpayer"]),
        intermediary=notation.parse(row.cells["intermediary"]),
        codes=tuple(sorted(set(words(row, "codes")))),
        valid_from=first_moment(row, "valid_from"),
        valid_until=last_moment(row, "valid_until"),
        evidence=on_paper(form) if (form := row.cells.get("paper_form", "")) else None,
    )


read_permissions = partial(read_file, columns=COLUMNS, parse=_parse)
