"""Changes that alter what a login gets, of each table; each column: registry/test_epochs.py."""

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

    def without_role(self) -> None:
        self.permission.delete()
        self.erp.role.delete()
        self.taxpayer.refresh_from_db()

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


_ROW = {
    "system_users": "id = {user}",
    "credentials": "system_user_id = {user}",
    "taxpayers": "id = {taxpayer}",
    "granted_permissions": "id = {permission}",
}


def change_of(table: str, assignment: str) -> str:
    return f"UPDATE {table} SET {assignment} WHERE {_ROW[table]}"  # noqa: S608 - constants


CHANGES = [
    Change("block", OWN, "system_user_blocked",
           change_of("system_users",
                     "blocked_at = '{past}', blocked_by = 'x', blocked_reason = 'y'")),
    Change("more scopes", OWN, f"{OWN} ReportingAPI",
           change_of("system_users", "scopes = 'InvoicingAPI ReportingAPI'")),
    Change("revoke the secret", OWN, "secret_revoked",
           change_of("credentials", "revoked_at = '{past}', slot = NULL")),
    Change("the secret is gone", OWN, "invalid_credentials",
           "DELETE FROM credentials WHERE system_user_id = {user}"),
    Change("deactivate its taxpayer", OWN, "taxpayer_inactive",
           change_of("taxpayers", "is_active = false")),
    Change("register the intermediary", "not_an_intermediary", "no_permission",
           "INSERT INTO intermediaries (taxpayer_id, created_at, is_active)"
           " VALUES ({taxpayer}, '{past}', true)", prepare=World.without_role),
    Change("grant", "no_permission", ACTING,
           "INSERT INTO granted_permissions (taxpayer_id, intermediary_id, valid_from, created_at)"
           " SELECT {represented}, id, '{past}', '{past}' FROM intermediaries"
           " WHERE taxpayer_id = {taxpayer};"
           " INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)"
           " SELECT id, 'documents:submit' FROM granted_permissions"
           " WHERE taxpayer_id = {represented} UNION ALL SELECT id, 'documents:view'"
           " FROM granted_permissions WHERE taxpayer_id = {represented}",
           prepare=World.without_permission),
    Change("revoke the permission", ACTING, "permission_revoked",
           change_of("granted_permissions", "revoked_at = '{past}'")),
    Change("fewer codes", ACTING, f"issued InvoicingAPI {VIEW}",
           "DELETE FROM granted_permission_codes"
           " WHERE permissioncode_id = 'documents:submit' AND grantedpermission_id = {permission}"),
    Change("deactivate the represented", ACTING, "no_permission",
           "UPDATE taxpayers SET is_active = false WHERE id = {represented}"),
    Change("only on behalf of others", OWN, "own_taxpayer_not_allowed",
           change_of("system_users", "only_on_behalf = true")),
    Change("from another network", OWN, "source_network_not_allowed",
           change_of("credentials", "allowed_networks = '192.0.2.0/24'")),
]  # fmt: skip
