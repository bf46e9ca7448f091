"""Imports from files, by the pages, the command and the management API: all rows or none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO

from django.db import IntegrityError

from taxpayers import actions
from taxpayers.files import row_kinds
from taxpayers.files.rows import BadRow, Columns, ParsedFile, read_file
from taxpayers.models import GrantedPermission, Intermediary, SystemUser
from taxpayers.operations import Operation, Reason
from taxpayers.services import bulk_import
from taxpayers.services.granted_permissions import prepare_permission
from taxpayers.services.history import Author, ChangeContext
from taxpayers.services.import_lock import one_import_at_a_time
from taxpayers.services.intermediaries import prepare_intermediary
from taxpayers.services.row_import import Checked, ImportPreview, check_rows
from taxpayers.services.system_users import prepare_system_user
from taxpayers.validation import ServiceError, reason_of_import, taxpayer_notation

MAX_ROWS = 2_000  # of a kind whose rows are checked one by one: each takes a few queries


@dataclass(frozen=True, slots=True)
class ImportResult:
    """How many records are new, and how many were registered before with the same values."""

    registered: int
    unchanged: int


class BadRowsError(ServiceError):
    """Rows that cannot be imported, in the file's order; so none was."""

    def __init__(self, bad_rows: Sequence[BadRow], total: int) -> None:
        super().__init__(f"{len(bad_rows)} of {total} rows are bad. Nothing has been imported.")
        self.bad_rows = tuple(bad_rows)


@dataclass(frozen=True, slots=True)
class ImportKind:
    """What can be imported; `check` takes the rows, the moment, and what is told how many."""

    operation: Operation
    columns: Columns
    check: Callable[[ParsedFile[Any], datetime, Callable[[int], object]], Checked]
    max_rows: Callable[[], int] = lambda: MAX_ROWS

    def read(self, file: BinaryIO, max_rows: int | None = None) -> ParsedFile[Any]:
        """All rows. Raises ServiceError if the file as a whole cannot be read, or is too long."""
        most = self.max_rows() if max_rows is None else min(self.max_rows(), max_rows)
        return read_file(file, taxpayer_notation(), most, self.columns)

    def preview(self, *, parsed: ParsedFile[Any], at: datetime) -> ImportPreview:
        """What `run` would do with this file now; changes nothing."""
        return self.check(parsed, at, int)[0]

    def run(
        self,
        *,
        parsed: ParsedFile[Any],
        source: str,
        by: Author,
        at: datetime,
        progress: Callable[[int], object] = int,
    ) -> ImportResult:
        """Register every row of the file `source` in one transaction; safe to repeat.

        Tells `progress` how many rows are checked. Raises BadRowsError with all bad rows, and
        ServiceError while another import is running, or if others register one of the rows.
        """
        reason = reason_of_import(source)
        context = ChangeContext(self.operation.action, by.in_one_task(), at, reason)
        with one_import_at_a_time():
            preview, store = self.check(parsed, at, progress)
            if preview.bad_rows:
                raise BadRowsError(preview.bad_rows, len(parsed.rows) + len(parsed.bad_rows))
            try:
                store(context)
            except IntegrityError:
                raise ServiceError(
                    "Another person registered a record of this file just now."
                    " Nothing has been imported. Start the import again."
                ) from None
        return ImportResult(registered=len(preview.new), unchanged=preview.unchanged)


_operation = partial(Operation, reason=Reason.NONE)
IMPORT_KINDS = {
    "taxpayers": ImportKind(
        _operation(actions.IMPORT_REGISTRY, "Import taxpayers", "Registers many taxpayers."),
        row_kinds.TAXPAYERS,
        bulk_import.check_taxpayers,
        bulk_import.max_rows,
    ),
    "intermediaries": ImportKind(
        _operation(
            actions.REGISTER_INTERMEDIARY,
            "Import intermediaries",
            "Makes many taxpayers intermediaries. Each must be registered as a taxpayer first.",
            own_name="import_intermediaries",
        ),
        row_kinds.INTERMEDIARIES,
        partial(check_rows, Intermediary, prepare_intermediary),
    ),
    "permissions": ImportKind(
        _operation(
            actions.GRANT_PERMISSION,
            "Import permissions",
            "Grants many permissions. The taxpayers and the intermediaries must be registered"
            " first.",
            own_name="import_permissions",
        ),
        row_kinds.PERMISSIONS,
        partial(check_rows, GrantedPermission, prepare_permission),
    ),
    "system_users": ImportKind(
        _operation(
            actions.REGISTER_SYSTEM_USER,
            "Import system users",
            "Registers many system users. They get no secret, so they cannot log in yet: no"
            " file ever has a secret. Issue a secret for each when you hand it over to its"
            " operator.",
            own_name="import_system_users",
        ),
        row_kinds.SYSTEM_USERS,
        partial(check_rows, SystemUser, prepare_system_user),
    ),
}
