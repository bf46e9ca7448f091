"""The registry as it was committed at one moment, read by the ORM: the oracle's own knowledge.

It shares nothing with the facts that the login reads but their frozen values.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Model

from taxpayers.client_keys import PRIVATE_KEY_JWT
from taxpayers.facts.values import (
    ClientFacts,
    CredentialFacts,
    Facts,
    FactsQuery,
    IntermediaryFacts,
    PermissionFacts,
    RepresentedFacts,
)
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser, Taxpayer


class TaxpayerRow(NamedTuple):
    id: int
    tin: str
    rob: str
    is_active: bool

    @property
    def identifier(self) -> TaxpayerId:
        return TaxpayerId(self.tin, self.rob)


class RoleRow(NamedTuple):
    id: int
    taxpayer_id: int
    is_active: bool
    active_until: datetime | None


class ClientRow(NamedTuple):
    id: int
    client_id: str
    taxpayer_id: int
    scopes: str
    logins_per_minute: int
    blocked_at: datetime | None
    expires_at: datetime | None
    token_binding: str
    allowed_permissions: str
    allowed_taxpayers: str
    only_on_behalf: bool
    token_endpoint_auth_method: str


class CredentialRow(NamedTuple):
    id: int
    system_user_id: int
    lookup: str
    hint: str
    expires_at: datetime
    revoked_at: datetime | None
    allowed_networks: str
    public_jwk: str

    def is_live(self, now: datetime) -> bool:
        return self.revoked_at is None and self.expires_at > now


class PermissionRow(NamedTuple):
    id: int
    taxpayer_id: int
    intermediary_id: int
    valid_from: datetime
    valid_until: datetime | None
    revoked_at: datetime | None


class CodeRow(NamedTuple):
    id: int
    grantedpermission_id: int
    permissioncode_id: str


SOURCES: dict[str, tuple[type[Model], Any]] = {
    "taxpayers": (Taxpayer, TaxpayerRow),
    "intermediaries": (Intermediary, RoleRow),
    "system_users": (SystemUser, ClientRow),
    "credentials": (Credential, CredentialRow),
    "granted_permissions": (GrantedPermission, PermissionRow),
    "granted_permission_codes": (GrantedPermission.codes.through, CodeRow),
}
TABLES = tuple(SOURCES)
# In an order that a seed repeats. Django adds codes in the order of a set, so their keys differ.
ORDER = dict.fromkeys(TABLES, ("id",)) | {
    "granted_permission_codes": ("grantedpermission_id", "permissioncode_id")
}


@dataclass(frozen=True, eq=False)
class Registry:
    """All rows of each table, by their keys."""

    taxpayers: tuple[TaxpayerRow, ...]
    intermediaries: tuple[RoleRow, ...]
    system_users: tuple[ClientRow, ...]
    credentials: tuple[CredentialRow, ...]
    granted_permissions: tuple[PermissionRow, ...]
    granted_permission_codes: tuple[CodeRow, ...]
    _facts: dict[FactsQuery, Facts | None] = field(default_factory=dict, init=False, repr=False)

    def facts(self, query: FactsQuery) -> Facts | None:
        """What it says about one attempt; None if the id is unknown or the secret is wrong."""
        if query not in self._facts:
            self._facts[query] = self._find(query)
        return self._facts[query]

    @property
    def rows(self) -> dict[str, tuple[Any, ...]]:
        """All rows, by the names of their tables."""
        return {table: getattr(self, table) for table in TABLES}

    def taxpayer(self, id_: int) -> TaxpayerRow:
        return next(row for row in self.taxpayers if row.id == id_)

    def _find(self, query: FactsQuery) -> Facts | None:
        known = (row for row in self.system_users if row.client_id == query.client_id)
        if not (client := next(known, None)):
            return None
        has_keys = client.token_endpoint_auth_method == PRIVATE_KEY_JWT
        named = (client.id, query.lookup, has_keys)
        for secret in self.credentials:
            if (secret.system_user_id, secret.lookup, bool(secret.public_jwk)) == named:
                break
        else:
            return None
        own = self.taxpayer(client.taxpayer_id)
        role = next((row for row in self.intermediaries if row.taxpayer_id == own.id), None)
        return Facts(
            ClientFacts(
                client.id,
                client.client_id,
                own.identifier,
                own.is_active,
                tuple(client.scopes.split()),
                client.logins_per_minute,
                client.blocked_at,
                client.expires_at,
                role and IntermediaryFacts(role.is_active, role.active_until),
                client.token_binding,
                tuple(client.allowed_permissions.split()),
                client.allowed_taxpayers != "",
                bool(client.only_on_behalf),
            ),
            CredentialFacts(
                secret.id,
                secret.hint,
                secret.expires_at,
                secret.revoked_at,
                secret.public_jwk,
                tuple(secret.allowed_networks.split()),
            ),
            self._represented(query.on_behalf_of, client, role) if query.on_behalf_of else None,
        )

    def _represented(
        self, named: TaxpayerId, client: ClientRow, role: RoleRow | None
    ) -> RepresentedFacts:
        allowed = client.allowed_taxpayers.split()
        is_allowed = not allowed or str(named) in allowed
        for taxpayer in self.taxpayers:
            if taxpayer.identifier == named:
                granted = tuple(self._permissions(taxpayer.id, role.id)) if role else ()
                return RepresentedFacts(named, taxpayer.is_active, granted, is_allowed)
        return RepresentedFacts(named, None, is_allowed=is_allowed)

    def _permissions(self, taxpayer_id: int, role_id: int) -> Iterator[PermissionFacts]:
        for row in self.granted_permissions:
            if (row.taxpayer_id, row.intermediary_id) == (taxpayer_id, role_id):
                codes = tuple(
                    code.permissioncode_id
                    for code in self.granted_permission_codes
                    if code.grantedpermission_id == row.id
                )
                yield PermissionFacts(codes, row.valid_from, row.valid_until, row.revoked_at)


def read_registry() -> Registry:
    """What is committed now."""
    return Registry(**{table: _rows(table) for table in TABLES})


def read_again(known: Registry, tables: tuple[str, ...]) -> Registry:
    """As `read_registry`, when only these tables have changed."""
    return Registry(**known.rows | {table: _rows(table) for table in tables})


def _rows(table: str) -> tuple[Any, ...]:
    model, row = SOURCES[table]
    return tuple(
        map(row._make, model._default_manager.order_by(*ORDER[table]).values_list(*row._fields))
    )
