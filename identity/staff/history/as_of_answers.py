"""Who could act for a taxpayer, and what a system user could do, as `taxpayers.rules` decide it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.framework.badges import (
    Badge,
    badge_of_credential,
    badge_of_intermediary,
    badge_of_permission,
    badge_of_taxpayer,
)
from identity.staff.framework.lists import Context
from taxpayers.credential_kind import CredentialKind
from taxpayers.facts.values import RepresentedFacts
from taxpayers.models import GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.rules import Authorization, Refused, RegistryReason
from taxpayers.standing.as_of import rows_as_of
from taxpayers.standing.past_clients import (
    PastClient,
    PastPair,
    clients_as_of,
    decide_as_of,
    pairs_as_of,
)
from tokens.refusals.table import REFUSALS

PAGE_SIZE = 25
MAX_CLIENTS = 500  # of the intermediaries on one page
MAX_SECRETS = 20
MAX_PERMISSIONS = 5  # of one pair: the newest ones

_ORDER = {str(reason): position for position, reason in enumerate(RegistryReason)}
_YES, _NO = gettext_lazy("Yes"), gettext_lazy("No")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a login would have got: the token, or why there was none."""

    authorization: Authorization | None
    reason: str = ""
    since: datetime | None = None
    kind: CredentialKind = CredentialKind.SECRET  # what the refused client logged in with

    @property
    def badge(self) -> Badge:
        return Badge(_YES, "good") if self.authorization else Badge(_NO, "bad")

    @property
    def text(self) -> str:
        """Why not, in the words of the refusal; empty after a yes."""
        if self.authorization:
            return ""
        if not self.reason:
            return _("No system user had a secret, key or certificate.")
        return _(REFUSALS[self.reason].staff_text_of(self.kind))


@dataclass(frozen=True, slots=True)
class PairLine:
    """A taxpayer and an intermediary: whether it could act, and every permission between them."""

    pair: PastPair
    outcome: Outcome
    permissions: list[tuple[GrantedPermission, Badge]]


@dataclass(frozen=True, slots=True)
class Pairs:
    lines: list[PairLine]
    page: int
    has_more: bool
    lacks_clients: bool = False  # more system users than are looked at


def taxpayer_as_of(row: Taxpayer, at: datetime, page: int) -> Context | None:
    """Its role, its system users, and who could act for it. None: it was not registered by then."""
    for taxpayer in rows_as_of([row], at):
        roles = rows_as_of(Intermediary.objects.filter(taxpayer=row), at)
        users = list(SystemUser.objects.filter(taxpayer=row).order_by("-pk")[: PAGE_SIZE + 1])
        own = clients_as_of(users[:PAGE_SIZE], at)
        return {
            "taxpayer": taxpayer,
            "state": badge_of_taxpayer(taxpayer, at),
            "role": roles[0] if roles else None,
            "role_state": badge_of_intermediary(roles[0], at) if roles else None,
            # Whether it could log in for its own taxpayer.
            "users": [(client, outcome_of([client], None, at)) for client in own],
            "has_more_users": len(users) > PAGE_SIZE,
            "acting": _acting_for(row, at, page),
        }
    return None


def system_user_as_of(row: SystemUser, at: datetime, page: int) -> Context | None:
    """What it could do for itself and for others. None: it was not registered by then."""
    for client in clients_as_of([row], at):
        shown = client.credentials[:MAX_SECRETS]
        return {
            "client": client,
            "outcome": outcome_of([client], None, at),
            "credentials": [(one, badge_of_credential(one, at)) for one in shown],
            "represented": _represented_by(client, client.role, at, page) if client.role else None,
        }
    return None


def outcome_of(
    clients: Iterable[PastClient], represented: RepresentedFacts | None, at: datetime
) -> Outcome:
    """The best that a login of one of these clients could get."""
    best = Outcome(None)
    for client in clients:
        try:
            token = decide_as_of(client, represented, tuple(settings.SCOPES), at)
        except Refused as refused:
            if not best.reason or _ORDER[refused.reason] > _ORDER[best.reason]:
                kind = client.user.credential_kind
                best = Outcome(None, refused.reason, refused.since, kind)
        else:
            if token is not None:
                return Outcome(token)
    return best


def _acting_for(taxpayer: Taxpayer, at: datetime, page: int) -> Pairs:
    """The intermediaries with a permission of this taxpayer, those that could act first."""
    granted = GrantedPermission.objects.filter(taxpayer=taxpayer.pk, created_at__lte=at)
    pairs, has_more = _page_of(granted, "intermediary_id", page, at)
    owners = {pair.intermediary.taxpayer_id for pair in pairs}
    users = list(SystemUser.objects.filter(taxpayer__in=owners).order_by("pk")[: MAX_CLIENTS + 1])
    clients = defaultdict(list)
    for client in clients_as_of(users[:MAX_CLIENTS], at):
        clients[client.user.taxpayer_id].append(client)
    lines = _lines([(pair, clients[pair.intermediary.taxpayer_id]) for pair in pairs], at)
    lines.sort(key=lambda line: (line.outcome.authorization is None, line.pair.intermediary.pk))
    return Pairs(lines, page, has_more, lacks_clients=len(users) > MAX_CLIENTS)


def _represented_by(client: PastClient, role: Intermediary, at: datetime, page: int) -> Pairs:
    """The taxpayers that granted a permission to the intermediary of this client."""
    granted = GrantedPermission.objects.filter(intermediary=role.pk, created_at__lte=at)
    pairs, has_more = _page_of(granted, "taxpayer_id", page, at)
    lines = _lines([(pair, [client]) for pair in pairs], at)
    lines.sort(key=lambda line: line.pair.taxpayer.pk)
    return Pairs(lines, page, has_more)


def _page_of(
    granted: "QuerySet[GrantedPermission]", key: str, page: int, at: datetime
) -> tuple[list[PastPair], bool]:
    """The pairs on this page, by the key of the other side, and if there are more."""
    start = (page - 1) * PAGE_SIZE
    keys = granted.order_by(key).values_list(key, flat=True).distinct()
    found = list(keys[start : start + PAGE_SIZE + 1])
    on_page = granted.filter(**{f"{key}__in": found[:PAGE_SIZE]}).order_by("pk")
    return pairs_as_of(on_page.prefetch_related("codes"), at), len(found) > PAGE_SIZE


def _lines(pairs: list[tuple[PastPair, list[PastClient]]], at: datetime) -> list[PairLine]:
    return [
        PairLine(
            pair,
            outcome_of(clients, pair.facts(), at),
            [(row, badge_of_permission(row, at)) for row in pair.permissions[-MAX_PERMISSIONS:]],
        )
        for pair, clients in pairs
    ]
