"""Changes that alter what a login gets, one of each kind; each column: registry/test_epochs.py."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from taxpayers.models import Taxpayer
from taxpayers.services import Author
from tests.support.erp import new_erp
from tests.support.factories import (
    SUBMIT,
    VIEW,
    GrantedPermissionFactory,
    IntermediaryFactory,
    TaxpayerFactory,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOW = datetime.now(UTC)
SCOPES = {name: {"description": "d", "audience": name} for name in ("InvoicingAPI", "ReportingAPI")}
BY: dict[str, Any] = {"by": Author("alice"), "at": NOW}
WHY: dict[str, Any] = {"reason": "because", **BY}
OWN, ACTING = "issued InvoicingAPI", f"issued InvoicingAPI {SUBMIT} {VIEW}"


class World:
    """An ERP system of an intermediary, and a taxpayer who granted it a permission."""

    def __init__(self) -> None:
        role: Any = IntermediaryFactory.create()
        self.erp, self.taxpayer = (
            new_erp(taxpayer=role.taxpayer, logins_per_minute=30),
            role.taxpayer,
        )
        self.user = self.erp.system_user
        self.represented: Taxpayer = TaxpayerFactory.create()
        self.permission: Any = GrantedPermissionFactory.create(
            taxpayer=self.represented, intermediary=role, valid_from=NOW - 10 * DAY
        )

    def without_permission(self) -> None:
        self.permission.delete()

    def sql(self, statement: str) -> str:
        """The statement with the keys of this world."""
        return statement.format(
            user=self.user.pk,
            taxpayer=self.taxpayer.pk,
            represented=self.represented.pk,
            permission=self.permission.pk,
            past=(NOW - HOUR).strftime("%Y-%m-%d %H:%M:%S"),
        )


@dataclass(frozen=True)
class Change:
    """What a login gets before and after it. By SQL: a service's own change is no other one."""

    name: str
    before: str
    after: str
    sql: str
    prepare: Callable[[World], object] = lambda world: None

    @property
    def on_behalf(self) -> bool:
        return OWN not in (self.before, self.after)


CHANGES = [
    Change("of its row", OWN, "system_user_blocked",
           "UPDATE system_users SET blocked_at = '{past}', blocked_by = 'x', blocked_reason = 'y'"
           " WHERE id = {user}"),
    Change("a row is gone", OWN, "invalid_credentials",
           "DELETE FROM credentials WHERE system_user_id = {user}"),
    Change("of another taxpayer", ACTING, "no_permission",
           "UPDATE taxpayers SET is_active = false WHERE id = {represented}"),
    Change("new rows", "no_permission", ACTING,
           "INSERT INTO granted_permissions (taxpayer_id, intermediary_id, valid_from, created_at)"
           " SELECT {represented}, id, '{past}', '{past}' FROM intermediaries"
           " WHERE taxpayer_id = {taxpayer};"
           " INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)"
           " SELECT id, 'documents:submit' FROM granted_permissions"
           " WHERE taxpayer_id = {represented} UNION ALL SELECT id, 'documents:view'"
           " FROM granted_permissions WHERE taxpayer_id = {represented}",
           prepare=World.without_permission),
]  # fmt: skip
