"""What can be imported from a file: one description for each kind, for the pages and the command.

Of each kind: the columns, how a row is read, and what registers it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO

from django.db.models import Model

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.files import row_kinds
from taxpayers.files.row_kinds import IntermediaryRow, PermissionRow, SystemUserRow
from taxpayers.files.rows import Columns, ParsedFile
from taxpayers.identifiers import Notation
from taxpayers.models import GrantedPermission, Intermediary, SystemUser
from taxpayers.operations import Operation, Reason
from taxpayers.services import bulk_import, row_import
from taxpayers.services.granted_permissions import prepare_permission
from taxpayers.services.intermediaries import prepare_intermediary
from taxpayers.services.new_records import NewRecord
from taxpayers.services.row_import import ImportPreview, ImportResult, NamedTaxpayers
from taxpayers.services.system_users import prepare_system_user
from taxpayers.validation import taxpayer_notation


@dataclass(frozen=True, slots=True)
class ImportKind:
    """`preview(parsed=…, at=…)` changes nothing; `run(parsed=…, source=…, by=…, at=…)` imports."""

    operation: Operation
    columns: Columns
    read_rows: Callable[[BinaryIO, Notation, int], ParsedFile[Any]]
    max_rows: Callable[[], int]
    preview: Callable[..., ImportPreview]
    run: Callable[..., ImportResult]

    def read(self, file: BinaryIO, max_rows: int | None = None) -> ParsedFile[Any]:
        """All rows. Raises ServiceError if the file as a whole cannot be read, or is too long."""
        most = self.max_rows() if max_rows is None else min(self.max_rows(), max_rows)
        return self.read_rows(file, taxpayer_notation(), most)


def _preview_taxpayers(*, parsed: ParsedFile[Any], at: datetime) -> ImportPreview:
    return bulk_import.preview_registry(parsed=parsed)


def _prepare_intermediary(row: IntermediaryRow, named: NamedTaxpayers, at: datetime) -> NewRecord:
    return prepare_intermediary(taxpayer=named.taxpayer(row.taxpayer), until=row.until, at=at)


def _prepare_permission(row: PermissionRow, named: NamedTaxpayers, at: datetime) -> NewRecord:
    """A first day in the past means now: what is granted today was not in force yesterday."""
    return prepare_permission(
        taxpayer=named.taxpayer(row.taxpayer),
        intermediary=named.intermediary(row.intermediary),
        codes=row.codes,
        valid_from=max(row.valid_from or at, at),
        valid_until=row.valid_until,
        evidence=row.evidence,
        at=at,
    )


def _prepare_system_user(row: SystemUserRow, named: NamedTaxpayers, at: datetime) -> NewRecord:
    return prepare_system_user(
        taxpayer=named.taxpayer(row.taxpayer),
        name=row.name,
        scopes=row.scopes,
        expires_at=row.expires_at,
        logins_per_minute=row.logins_per_minute,
        at=at,
    )


def _row_by_row(
    operation: Operation, columns: Columns, read_rows: Any, model: type[Model], prepare: Any
) -> ImportKind:
    return ImportKind(
        operation,
        columns,
        read_rows,
        row_import.max_rows,
        partial(row_import.preview_rows, prepare),
        partial(row_import.import_rows, model, operation.action, prepare),
    )


_operation = partial(Operation, reason=Reason.NONE)
IMPORT_KINDS = {
    "taxpayers": ImportKind(
        _operation(
            actions.IMPORT_REGISTRY,
            marked("Import taxpayers"),
            marked("Registers many taxpayers."),
        ),
        row_kinds.TAXPAYERS,
        row_kinds.read_taxpayers,
        bulk_import.max_rows,
        _preview_taxpayers,
        bulk_import.import_registry,
    ),
    "intermediaries": _row_by_row(
        _operation(
            actions.REGISTER_INTERMEDIARY,
            marked("Import intermediaries"),
            marked(
                "Makes many taxpayers intermediaries. Each must be registered as a taxpayer first."
            ),
            own_name="import_intermediaries",
        ),
        row_kinds.INTERMEDIARIES,
        row_kinds.read_intermediaries,
        Intermediary,
        _prepare_intermediary,
    ),
    "permissions": _row_by_row(
        _operation(
            actions.GRANT_PERMISSION,
            marked("Import permissions"),
            marked(
                "Grants many permissions. The taxpayers and the intermediaries must be registered"
                " first."
            ),
            own_name="import_permissions",
        ),
        row_kinds.PERMISSIONS,
        row_kinds.read_permissions,
        GrantedPermission,
        _prepare_permission,
    ),
    "system_users": _row_by_row(
        _operation(
            actions.REGISTER_SYSTEM_USER,
            marked("Import system users"),
            marked(
                "Registers many system users. They get no secret, so they cannot log in yet: no"
                " file ever has a secret. Issue a secret for each when you hand it over to its"
                " operator."
            ),
            own_name="import_system_users",
        ),
        row_kinds.SYSTEM_USERS,
        row_kinds.read_system_users,
        SystemUser,
        _prepare_system_user,
    ),
}
