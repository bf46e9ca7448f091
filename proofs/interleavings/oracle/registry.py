"""The registry as it was committed at one moment, read by the ORM: the oracle's own knowledge.

It shares nothing with the facts that the login reads but their frozen values. These are made of the
rows by the same functions as for decisions about the past, which no login calls.
"""

from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model, prefetch_related_objects

from taxpayers.facts.values import Facts, FactsQuery, RepresentedFacts
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.standing.past_clients import PastClient, represented_facts

MODELS: dict[str, type[Model]] = {
    "taxpayers": Taxpayer,
    "intermediaries": Intermediary,
    "system_users": SystemUser,
    "credentials": Credential,
    "granted_permissions": GrantedPermission,
    "granted_permission_codes": GrantedPermission.codes.through,
}
TABLES = tuple(MODELS)
# In an order that a seed repeats. Django adds codes in the order of a set, so their keys differ.
ORDER = dict.fromkeys(TABLES, ("id",)) | {
    "granted_permission_codes": ("grantedpermission_id", "permissioncode_id")
}


@dataclass(frozen=True, eq=False)
class Registry:
    """All rows of each table, by their keys."""

    taxpayers: list[Taxpayer]
    intermediaries: list[Intermediary]
    system_users: list[SystemUser]
    credentials: list[Credential]
    granted_permissions: list[GrantedPermission]
    granted_permission_codes: list[Any]
    _facts: dict[FactsQuery, Facts | None] = field(default_factory=dict, init=False, repr=False)

    def facts(self, query: FactsQuery) -> Facts | None:
        """What it says about one attempt; None if the id is unknown or the secret is wrong."""
        if query not in self._facts:
            self._facts[query] = self._find(query)
        return self._facts[query]

    @property
    def values(self) -> dict[str, list[list[Any]]]:
        return {
            table: [
                [getattr(row, column.attname) for column in model._meta.concrete_fields]
                for row in getattr(self, table)
            ]
            for table, model in MODELS.items()
        }

    def taxpayer(self, id_: int) -> Taxpayer:
        return next(row for row in self.taxpayers if row.id == id_)

    def _find(self, query: FactsQuery) -> Facts | None:
        for client in self.system_users:
            for secret in self.credentials:
                named = (client.client_id, client.id, secret.lookup)
                asked = (query.client_id, secret.system_user_id, query.lookup)
                if named == asked and secret.fits(client):
                    return self._facts_of(client, secret, query.on_behalf_of)
        return None

    def _facts_of(self, client: SystemUser, secret: Credential, named: TaxpayerId | None) -> Facts:
        client.taxpayer = self.taxpayer(client.taxpayer_id)
        roles = (row for row in self.intermediaries if row.taxpayer_id == client.taxpayer_id)
        role = next(roles, None)
        represented = self._represented(named, role) if named else None
        return PastClient(client, role, [secret]).facts(secret, represented)

    def _represented(self, named: TaxpayerId, role: Intermediary | None) -> RepresentedFacts:
        taxpayer = next((row for row in self.taxpayers if row.identifier == named), None)
        pair = (taxpayer and taxpayer.id, role and role.id)
        rows = self.granted_permissions
        granted = [row for row in rows if (row.taxpayer_id, row.intermediary_id) == pair]
        return represented_facts(named, taxpayer, granted)


def read_registry() -> Registry:
    rows: dict[str, list[Any]] = {
        table: list(model._default_manager.order_by(*ORDER[table]))
        for table, model in MODELS.items()
    }
    prefetch_related_objects(rows["granted_permissions"], "codes")
    return Registry(**rows)
