"""Clients, and for which taxpayers they could act, in the past: facts for `rules.decide`."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from taxpayers.facts.values import Facts, IntermediaryFacts, PermissionFacts, RepresentedFacts
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.rules import Authorization, AuthorizationRequest, decide, required_confirmation
from taxpayers.standing.as_of import rows_as_of, secrets_as_of, system_users_as_of
from taxpayers.standing.loaded_rows import client_facts, credential_facts


@dataclass(frozen=True, slots=True)
class PastClient:
    """A system user as it was, with its taxpayer, the role of that taxpayer, and its secrets."""

    user: SystemUser
    role: Intermediary | None
    credentials: list[Credential]  # newest first

    def best_credential(self) -> Credential | None:
        """The secret with which a login had the best chance; None if it had no secret."""
        usable = (row for row in self.credentials if row.fits(self.user))
        return max(usable, key=lambda row: (row.revoked_at is None, row.expires_at), default=None)

    def facts(self, secret: Credential, represented: RepresentedFacts | None) -> Facts:
        """What the registry knew of a login with this secret."""
        role = self.role
        client = replace(
            client_facts(self.user),
            intermediary=IntermediaryFacts(role.is_active, role.active_until) if role else None,
        )
        if represented is not None:
            is_allowed = self.user.may_act_for(represented.taxpayer)
            represented = replace(represented, is_allowed=is_allowed)
        return Facts(client, credential_facts(secret), represented)


@dataclass(frozen=True, slots=True)
class PastPair:
    """A taxpayer, an intermediary, and every permission between them up to the moment."""

    taxpayer: Taxpayer
    intermediary: Intermediary
    permissions: list[GrantedPermission]

    def facts(self) -> RepresentedFacts:
        """What the registry knew of the taxpayer, seen from clients of the intermediary."""
        return represented_facts(self.taxpayer.identifier, self.taxpayer, self.permissions)


def clients_as_of(users: Iterable[SystemUser], at: datetime) -> list[PastClient]:
    """Those of these system users that were registered by the moment, as they were."""
    present = system_users_as_of(users, at)
    owners = {user.taxpayer_id for user in present}
    taxpayers = {row.pk: row for row in rows_as_of(Taxpayer.objects.filter(pk__in=owners), at)}
    roles = {
        row.taxpayer_id: row
        for row in rows_as_of(Intermediary.objects.filter(taxpayer__in=owners), at)
    }
    secrets = secrets_as_of(present, at)
    clients = []
    for user in present:
        if (owner := taxpayers.get(user.taxpayer_id)) is not None:
            user.taxpayer = owner
            role, issued = roles.get(owner.pk), secrets.get(user.pk, [])
            clients.append(PastClient(user, role, issued))
    return clients


def pairs_as_of(permissions: Iterable[GrantedPermission], at: datetime) -> list[PastPair]:
    """The pairs of these permissions; give all permissions of a pair, with their codes."""
    by_pair = defaultdict(list)
    for row in rows_as_of(permissions, at):
        by_pair[row.taxpayer_id, row.intermediary_id].append(row)
    roles = Intermediary.objects.filter(pk__in={role for _taxpayer, role in by_pair})
    intermediaries = {row.pk: row for row in rows_as_of(roles, at)}
    keys = {taxpayer for taxpayer, _role in by_pair}
    keys |= {row.taxpayer_id for row in intermediaries.values()}
    taxpayers = {row.pk: row for row in rows_as_of(Taxpayer.objects.filter(pk__in=keys), at)}
    for role in intermediaries.values():
        if (owner := taxpayers.get(role.taxpayer_id)) is not None:
            role.taxpayer = owner
    return [
        PastPair(taxpayers[taxpayer], intermediaries[role], rows)
        for (taxpayer, role), rows in by_pair.items()
        if taxpayer in taxpayers and role in intermediaries
    ]


def represented_facts(
    identifier: TaxpayerId, taxpayer: Taxpayer | None, permissions: Iterable[GrantedPermission]
) -> RepresentedFacts:
    """The facts of the taxpayer that a login names; None: no such taxpayer was registered."""
    granted = tuple(
        PermissionFacts(
            tuple(sorted(code.pk for code in row.codes.all())),
            row.valid_from,
            row.valid_until,
            row.revoked_at,
        )
        for row in permissions
    )
    return RepresentedFacts(identifier, taxpayer.is_active if taxpayer else None, granted)


def decide_as_of(
    client: PastClient,
    represented: RepresentedFacts | None,
    known_scopes: tuple[str, ...],
    at: datetime,
) -> Authorization | None:
    """The token that it could get; None: it had no secret at all. Raises Refused."""
    secret = client.best_credential()
    if secret is None:
        return None
    facts = client.facts(secret, represented)
    proved = required_confirmation(facts)
    return decide(AuthorizationRequest(facts, None, known_scopes, at, proved))
