"""The rows of an import, as JSON has them and as the services take them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from identity.api.framework.fields import Body, Truth
from identity.api.registry.intermediaries import IntermediaryRowBody
from identity.api.registry.permissions import PermissionRowBody
from identity.api.registry.system_users import SystemUserRowBody
from identity.api.registry.taxpayers import NewTaxpayerBody
from taxpayers.files.intermediary_rows import IntermediaryRow
from taxpayers.files.permission_rows import PermissionRow
from taxpayers.files.rows import Row
from taxpayers.files.system_user_rows import SystemUserRow
from taxpayers.files.taxpayer_rows import TaxpayerRow
from taxpayers.services import IMPORT_KINDS, ImportKind
from taxpayers.validation import validate_name

MOST_ROWS = 500


class TaxpayerRowBody(NewTaxpayerBody):
    """A taxpayer."""

    is_active = Truth(required=False, help_text="Left out: true.")


def _taxpayer(line: int, values: dict[str, Any]) -> TaxpayerRow:
    name = validate_name(values["name"])
    return TaxpayerRow(line, values["taxpayer"], name, values.get("is_active"))


def _intermediary(line: int, values: dict[str, Any]) -> IntermediaryRow:
    return IntermediaryRow(line, values["taxpayer"], values.get("until"))


def _permission(line: int, values: dict[str, Any]) -> PermissionRow:
    return PermissionRow(
        line,
        values["taxpayer"],
        values["intermediary"],
        tuple(sorted(set(values["codes"]))),
        values.get("valid_from"),
        values.get("valid_until"),
        values.get("evidence"),
    )


def _system_user(line: int, values: dict[str, Any]) -> SystemUserRow:
    return SystemUserRow(
        line,
        values["taxpayer"],
        validate_name(values["name"]),
        tuple(values["scopes"]) if "scopes" in values else None,
        values.get("logins_per_minute"),
        values.get("expires_at"),
    )


@dataclass(frozen=True, slots=True)
class RowKind:
    """`name` is that of the import; `row` raises ServiceError for values that cannot be one."""

    name: str
    body: type[Body]
    row: Callable[[int, dict[str, Any]], Row]

    @property
    def of_file(self) -> ImportKind:
        """The same import, of a file."""
        return IMPORT_KINDS[self.name]


ROW_KINDS = {
    "taxpayers": RowKind("taxpayers", TaxpayerRowBody, _taxpayer),
    "intermediaries": RowKind("intermediaries", IntermediaryRowBody, _intermediary),
    "permissions": RowKind("permissions", PermissionRowBody, _permission),
    "system-users": RowKind("system_users", SystemUserRowBody, _system_user),
}
