"""Intermediaries in a file: `tin`, and optionally `rob` and `active_until`."""

from datetime import datetime
from functools import partial

from django.utils.translation import gettext as _

from taxpayers.files.csv_reader import CsvRow
from taxpayers.files.rows import Columns, last_moment, read_file, yes_or_no
from taxpayers.identifiers import Notation, TaxpayerId
from taxpayers.moments import format_moment
from taxpayers.validation import ServiceError
from taxpayers.value import Value

COLUMNS = Columns(
    ("tin",),
    ("rob", "active_until"),
    ignored=("name", "active", "registered_at", "taxpayer_active"),
)


class IntermediaryRow(Value):
    """One intermediary of the file; without a last moment it has no end."""

    line: int
    taxpayer: TaxpayerId
    until: datetime | None = None

    @property
    def key(self) -> str:
        return str(self.taxpayer)

    @property
    def named(self) -> tuple[TaxpayerId, ...]:
        """The taxpayers that must be registered."""
        return (self.taxpayer,)

    @property
    def shown(self) -> tuple[str, ...]:
        until = format_moment(self.until) if self.until else ""
        return self.taxpayer.tin, self.taxpayer.rob, until


def _parse(row: CsvRow, notation: Notation) -> IntermediaryRow:
    if yes_or_no(row, "active") is False:
        # An export has those that are not active too: to import it must not make them active.
        raise ServiceError(_("it is not active: remove the row"))
    return IntermediaryRow(
        line=row.line,
        taxpayer=notation.parse_parts(row.cells["tin"], row.cells.get("rob", "")),
        until=last_moment(row, "active_until"),
    )


read_intermediaries = partial(read_file, columns=COLUMNS, parse=_parse)
