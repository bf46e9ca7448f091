"""The rows of an import, as JSON has them and as the services take them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rest_framework import serializers

from identity.api.framework.fields import Body, End, Start, Taxpayer, Text, Texts, Whole
from identity.api.registry.evidence import EvidenceBody
from taxpayers.files.intermediary_rows import IntermediaryRow
from taxpayers.files.permission_rows import PermissionRow
from taxpayers.files.rows import Row
from taxpayers.files.system_user_rows import SystemUserRow
from taxpayers.files.taxpayer_rows import TaxpayerRow
from taxpayers.models import MAX_LOGINS_PER_MINUTE
from taxpayers.services import IMPORT_KINDS, ImportKind
from taxpayers.validation import validate_name

MOST_ROWS = 500


class TaxpayerRowBody(Body):
    """A taxpayer."""

    taxpayer = Taxpayer()
    name = Text()
    is_active = serializers.BooleanField(required=False, help_text="Left out: true.")


class IntermediaryRowBody(Body):
    """An intermediary, whose taxpayer is registered."""

    taxpayer = Taxpayer()
    active_until = End(required=False, allow_null=True)


class PermissionRowBody(Body):
    """A permission, of which taxpayer and intermediary are registered."""

    taxpayer = Taxpayer(help_text="Who permits.")
    intermediary = Taxpayer(help_text="Who may act for it.")
    permissions = Texts(help_text="Permission codes: GET /permission-codes.")
    valid_from = Start(required=False, help_text="Left out, or in the past: now.")
    valid_until = End(required=False, allow_null=True)
    evidence = EvidenceBody(required=False)


class SystemUserRowBody(Body):
    """A system user without a secret: issue one for it, by rotate-secret."""

    taxpayer = Taxpayer()
    name = Text()
    scopes = Texts(required=False, help_text="Left out: the default scope.")
    logins_per_minute = Whole(required=False, min_value=0, max_value=MAX_LOGINS_PER_MINUTE)
    expires_at = End(required=False, allow_null=True)


def _taxpayer(line: int, values: dict[str, Any]) -> TaxpayerRow:
    name = validate_name(values["name"])
    return TaxpayerRow(line, values["taxpayer"], name, values.get("is_active"))


def _intermediary(line: int, values: dict[str, Any]) -> IntermediaryRow:
    return IntermediaryRow(line, values["taxpayer"], values.get("active_until"))


def _permission(line: int, values: dict[str, Any]) -> PermissionRow:
    return PermissionRow(
        line,
        values["taxpayer"],
        values["intermediary"],
        tuple(sorted(set(values["permissions"]))),
        values.get("valid_from"),
        values.get("valid_until"),
        values.get("evidence"),
    )


def _system_user(line: int, values: dict[str, Any]) -> SystemUserRow:
    return SystemUserRow(
        line,
        values["taxpayer"],
        validate_name(values["name"]),
        tuple(values.get("scopes", ())) or None,
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
