"""Each kind of change that alters what a login gets, by a service and by SQL."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from taxpayers.models import GrantedPermission, Taxpayer
from taxpayers.services import (
    Author,
    block_system_user,
    change_credential,
    change_system_user,
    extend_system_user,
    grant_permission,
    limit_system_user,
    register_intermediary,
    retire_credential,
    revoke_codes,
    revoke_credential,
    revoke_permission,
    set_intermediary_active,
    set_taxpayer_active,
    unblock_system_user,
)
from tests.support.erp import Erp, new_erp
from tests.support.factories import (
    SUBMIT,
    VIEW,
    GrantedPermissionFactory,
    IntermediaryFactory,
    TaxpayerFactory,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOW = datetime.now(UTC)
BEFORE = NOW - 2 * HOUR  # so that a service accepts an end that has passed since
SCOPES = {name: {"description": "d", "audience": name} for name in ("InvoicingAPI", "ReportingAPI")}
BY: dict[str, Any] = {"by": Author("alice"), "at": NOW}
WHY: dict[str, Any] = {"reason": "because", **BY}
EARLIER: dict[str, Any] = {**WHY, "at": BEFORE}


@dataclass
class World:
    """An ERP system of an intermediary, and a taxpayer who granted it a permission."""

    represented: Taxpayer = field(default_factory=TaxpayerFactory.create)
    erp: Erp = field(init=False)
    permission: GrantedPermission = field(init=False)

    def __post_init__(self) -> None:
        role = IntermediaryFactory.create()
        self.erp = new_erp(taxpayer=role.taxpayer, logins_per_minute=30)
        self.permission = GrantedPermissionFactory.create(
            taxpayer=self.represented, intermediary=role, valid_from=NOW - 10 * DAY
        )

    @property
    def user(self) -> Any:
        return self.erp.system_user

    @property
    def taxpayer(self) -> Taxpayer:
        return self.erp.system_user.taxpayer

    @property
    def secret(self) -> Any:
        return self.erp.system_user.credentials.get()

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
            represented_tin=self.represented.identifier,
            permission=self.permission.pk,
            past=(NOW - HOUR).strftime("%Y-%m-%d %H:%M:%S"),
            future=(NOW + DAY).strftime("%Y-%m-%d %H:%M:%S"),
        )


@dataclass(frozen=True)
class Change:
    """What a login gets before and after it; a service or SQL that cannot make it is left out."""

    name: str
    before: str
    after: str
    service: Callable[[World], object] | None
    sql: str
    on_behalf: bool = False
    prepare: Callable[[World], object] = lambda world: None


OWN, ACTING = "issued InvoicingAPI", f"issued InvoicingAPI {SUBMIT} {VIEW}"


_ROW = {
    "system_users": "id = {user}",
    "credentials": "system_user_id = {user}",
    "taxpayers": "id = {taxpayer}",
    "intermediaries": "taxpayer_id = {taxpayer}",
    "granted_permissions": "id = {permission}",
}


def change_of(table: str, assignment: str) -> str:
    return f"UPDATE {table} SET {assignment} WHERE {_ROW[table]}"  # noqa: S608 - nobody's input


def update(**fields: Any) -> Callable[[World], object]:
    return lambda w: type(w.user).objects.filter(pk=w.user.pk).update(**fields)


CHANGES = [
    Change("block", OWN, "system_user_blocked",
           lambda w: block_system_user(system_user=w.user, **WHY),
           change_of("system_users",
                     "blocked_at = '{past}', blocked_by = 'x', blocked_reason = 'y'")),
    Change("unblock", "system_user_blocked", OWN,
           lambda w: unblock_system_user(system_user=w.user, **WHY),
           change_of("system_users", "blocked_at = NULL, blocked_by = '', blocked_reason = ''"),
           prepare=update(blocked_at=NOW, blocked_by="x", blocked_reason="y")),
    Change("expire", OWN, "system_user_expired",
           lambda w: extend_system_user(system_user=w.user, expires_at=NOW - HOUR, **EARLIER),
           change_of("system_users", "expires_at = '{past}'")),
    Change("extend", "system_user_expired", OWN,
           lambda w: extend_system_user(system_user=w.user, expires_at=NOW + DAY, **WHY),
           change_of("system_users", "expires_at = '{future}'"),
           prepare=update(expires_at=NOW - HOUR)),
    Change("more scopes", OWN, f"{OWN} ReportingAPI",
           lambda w: change_system_user(system_user=w.user, scopes=SCOPES, **WHY),
           change_of("system_users", "scopes = 'InvoicingAPI ReportingAPI'")),
    Change("other scopes", OWN, "issued ReportingAPI",
           lambda w: change_system_user(system_user=w.user, scopes=["ReportingAPI"], **WHY),
           change_of("system_users", "scopes = 'ReportingAPI'")),
    Change("no scopes", OWN, "invalid_scope", None, change_of("system_users", "scopes = ''")),
    Change("lower limit", OWN, "rate_limited",
           lambda w: change_system_user(system_user=w.user, logins_per_minute=1, **WHY),
           change_of("system_users", "logins_per_minute = 1")),
    Change("revoke the secret", OWN, "secret_revoked",
           lambda w: revoke_credential(credential=w.secret, **WHY),
           change_of("credentials", "revoked_at = '{past}', slot = NULL")),
    Change("a revocation is taken back", "secret_revoked", OWN, None,
           change_of("credentials", "revoked_at = NULL, slot = 1"),
           prepare=lambda w: w.user.credentials.update(revoked_at=NOW, slot=None)),
    Change("end of the secret", OWN, "secret_expired",
           lambda w: retire_credential(credential=w.secret, last_moment=NOW - HOUR, **EARLIER),
           change_of("credentials", "expires_at = '{past}'")),
    Change("longer secret", "secret_expired", OWN, None,
           change_of("credentials", "expires_at = '{future}'"),
           prepare=lambda w: w.user.credentials.update(expires_at=NOW - HOUR)),
    Change("another secret in its place", OWN, "invalid_credentials", None,
           change_of("credentials", "lookup = 'x'")),
    Change("the secret is gone", OWN, "invalid_credentials", None,
           "DELETE FROM credentials WHERE system_user_id = {user}"),
    Change("deactivate its taxpayer", OWN, "taxpayer_inactive",
           lambda w: set_taxpayer_active(taxpayer=w.taxpayer, is_active=False, **WHY),
           change_of("taxpayers", "is_active = false")),
    Change("activate its taxpayer", "taxpayer_inactive", OWN,
           lambda w: set_taxpayer_active(taxpayer=w.taxpayer, is_active=True, **WHY),
           change_of("taxpayers", "is_active = true"),
           prepare=lambda w: Taxpayer.objects.filter(pk=w.taxpayer.pk).update(is_active=False)),
    Change("deactivate the intermediary", ACTING, "intermediary_inactive",
           lambda w: set_intermediary_active(
               intermediary=w.erp.role, is_active=False, until=None, **WHY),
           change_of("intermediaries", "is_active = false"), on_behalf=True),
    Change("end of the intermediary", ACTING, "intermediary_inactive",
           lambda w: set_intermediary_active(
               intermediary=w.erp.role, is_active=True, until=NOW - HOUR, **EARLIER),
           change_of("intermediaries", "active_until = '{past}'"), on_behalf=True),
    Change("register the intermediary", "not_an_intermediary", "no_permission",
           lambda w: register_intermediary(taxpayer=w.taxpayer, **BY),
           "INSERT INTO intermediaries (taxpayer_id, created_at, is_active)"
           " VALUES ({taxpayer}, '{past}', true)", on_behalf=True, prepare=World.without_role),
    Change("grant", "no_permission", ACTING,
           lambda w: grant_permission(taxpayer=w.represented, intermediary=w.erp.role,
                                      codes=[SUBMIT, VIEW], **{**BY, "at": NOW - DAY}),
           "", on_behalf=True, prepare=World.without_permission),
    Change("revoke the permission", ACTING, "permission_revoked",
           lambda w: revoke_permission(permission=w.permission, **WHY),
           change_of("granted_permissions", "revoked_at = '{past}'"), on_behalf=True),
    Change("end of the permission", ACTING, "permission_expired", None,
           change_of("granted_permissions", "valid_until = '{past}'"), on_behalf=True),
    Change("later begin of the permission", ACTING, "permission_not_yet_valid", None,
           change_of("granted_permissions", "valid_from = '{future}'"), on_behalf=True),
    Change("longer permission", "permission_expired", ACTING, None,
           change_of("granted_permissions", "valid_until = '{future}'"), on_behalf=True,
           prepare=lambda w: GrantedPermission.objects.filter(pk=w.permission.pk).update(
               valid_until=NOW - HOUR)),
    Change("fewer codes", ACTING, f"issued InvoicingAPI {VIEW}",
           lambda w: revoke_codes(taxpayer=w.represented, intermediary=w.erp.role, codes=[SUBMIT],
                                  **{**WHY, "at": NOW - HOUR}),
           "DELETE FROM granted_permission_codes"
           " WHERE permissioncode_id = 'documents:submit' AND grantedpermission_id = {permission}",
           on_behalf=True),
    Change("more codes", ACTING, f"issued InvoicingAPI documents:cancel {SUBMIT} {VIEW}",
           lambda w: grant_permission(taxpayer=w.represented, intermediary=w.erp.role,
                                      codes=["documents:cancel"], **{**BY, "at": NOW - DAY}),
           "INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)"
           " VALUES ({permission}, 'documents:cancel')", on_behalf=True),
    Change("the permission is gone", ACTING, "no_permission", None,
           "DELETE FROM granted_permission_codes WHERE grantedpermission_id = {permission};"
           " DELETE FROM granted_permissions WHERE id = {permission}", on_behalf=True),
    Change("deactivate the represented", ACTING, "no_permission",
           lambda w: set_taxpayer_active(taxpayer=w.represented, is_active=False, **WHY),
           "UPDATE taxpayers SET is_active = false WHERE id = {represented}", on_behalf=True),
    Change("activate the represented", "no_permission", ACTING,
           lambda w: set_taxpayer_active(taxpayer=w.represented, is_active=True, **WHY),
           "UPDATE taxpayers SET is_active = true WHERE id = {represented}", on_behalf=True,
           prepare=lambda w: Taxpayer.objects.filter(pk=w.represented.pk).update(is_active=False)),
    Change("limit to a permission", ACTING, f"issued InvoicingAPI {VIEW}",
           lambda w: limit_system_user(
               system_user=w.user, permissions=[VIEW], taxpayers=[], **WHY),
           change_of("system_users", "allowed_permissions = 'documents:view'"), on_behalf=True),
    Change("limit to permissions that were not granted", ACTING, "permissions_not_allowed",
           lambda w: limit_system_user(
               system_user=w.user, permissions=["documents:cancel"], taxpayers=[], **WHY),
           change_of("system_users", "allowed_permissions = 'documents:cancel'"),
           on_behalf=True),
    Change("limit to another taxpayer", ACTING, "taxpayer_not_allowed",
           lambda w: limit_system_user(
               system_user=w.user, permissions=[],
               taxpayers=[TaxpayerFactory.create().identifier], **WHY),
           change_of("system_users", "allowed_taxpayers = 'C0000000000 C0000000001'"),
           on_behalf=True),
    Change("limit to this taxpayer, too", "taxpayer_not_allowed", ACTING,
           lambda w: limit_system_user(
               system_user=w.user, permissions=[], taxpayers=[w.represented.identifier], **WHY),
           change_of("system_users", "allowed_taxpayers = 'C0000000000 {represented_tin}'"),
           on_behalf=True, prepare=update(allowed_taxpayers="C0000000000")),
    Change("no limit any more", "taxpayer_not_allowed", ACTING,
           lambda w: limit_system_user(
               system_user=w.user, permissions=[], taxpayers=[], **WHY),
           change_of("system_users", "allowed_taxpayers = '', allowed_permissions = ''"),
           on_behalf=True,
           prepare=update(allowed_taxpayers="C0000000000", allowed_permissions=VIEW)),
    Change("limit, for its own taxpayer", OWN, "own_taxpayer_not_allowed",
           lambda w: limit_system_user(
               system_user=w.user, permissions=[VIEW], taxpayers=[], **WHY),
           change_of("system_users", "allowed_taxpayers = 'C0000000000'")),
    Change("from another network", OWN, "source_network_not_allowed",
           lambda w: change_credential(
               credential=w.secret, allowed_networks=["192.0.2.0/24"], **WHY),
           change_of("credentials", "allowed_networks = '192.0.2.0/24'")),
    Change("from this network, too", "source_network_not_allowed", OWN,
           lambda w: change_credential(
               credential=w.secret, allowed_networks=["192.0.2.0/24", "127.0.0.1"], **WHY),
           change_of("credentials", "allowed_networks = '192.0.2.0/24 127.0.0.0/8'"),
           prepare=lambda w: w.user.credentials.update(allowed_networks="192.0.2.0/24")),
    Change("the represented gets a ROB number", ACTING, "no_permission", None,
           "UPDATE taxpayers SET rob = 'R-12345' WHERE id = {represented}", on_behalf=True),
]  # fmt: skip
